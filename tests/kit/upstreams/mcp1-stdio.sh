#!/usr/bin/env bash
# python mcp 1.x on standard input and output: DIR
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need py-mcp1
run "$DIR/py-mcp1/bin/python" "$here/mcp1_server.py" --transport stdio
