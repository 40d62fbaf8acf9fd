#!/usr/bin/env bash
# @modelcontextprotocol/server 2.x upstream whose tools ask the client, 2026-07-28 only, Streamable HTTP at /mcp: DIR PORT
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need npm-ask
export KIT_NODE_MODULES="$DIR/npm-ask/node_modules"; run "$NODE" "$here/ts2_server.mjs" "$PORT"
