#!/usr/bin/env bash
# python mcp 2.x on standard input and output: DIR
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"
need py-mcp2
run "$DIR/py-mcp2/bin/python" "$here/mcp2_server.py" --transport stdio ${KIT_ARGS:-}
