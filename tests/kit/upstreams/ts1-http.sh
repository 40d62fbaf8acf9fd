#!/usr/bin/env bash
# @modelcontextprotocol/sdk 1.x upstream whose tools ask the client, with sessions, Streamable HTTP at /mcp: DIR PORT
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need npm-ask
export KIT_NODE_MODULES="$DIR/npm-ask/node_modules"; run "$NODE" "$here/ts1_server.mjs" "$PORT"
