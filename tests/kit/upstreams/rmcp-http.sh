#!/usr/bin/env bash
# the server in rmcp-server/ on the rmcp 3.x crate, Streamable HTTP at /mcp: DIR PORT
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need rmcp-server
run "$DIR/rmcp-target/debug/kit-server" "$PORT"
