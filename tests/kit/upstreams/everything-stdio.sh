#!/usr/bin/env bash
# server-everything on standard input and output: DIR
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need npm-servers
run "$NODE" "$DIR/npm-servers/node_modules/@modelcontextprotocol/server-everything/dist/index.js" stdio
