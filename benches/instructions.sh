#!/usr/bin/env bash
# instructions.sh [--keep]   instructions of the gateway per tools/call, counted by callgrind, against those of instructions.txt
#   A release build on one worker thread answers calls of one client, few and many; the difference is what a call costs. Fails
#   where one costs over 5 % more than what is kept; --keep writes the new counts. Needs valgrind and python3.
# Env: WEIR  the binary (default: target/release/weir, which must be there)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../tests/kit/lib/procs.sh"
WEIR=${WEIR:-${CARGO_TARGET_DIR:-$root/target}/release/weir}
weir=$(find_weir)
command -v valgrind >/dev/null || { echo "instructions.sh needs valgrind" >&2; exit 2; }
dir=$(mktemp -d); trap 'set +e; stop_all; rm -rf "$dir"' EXIT   # what is ended does not end well
few=200 many=1200

read -r up listen admin < <(free_ports 3)
start "$dir/up.log" python3 "$here/instructions.py" upstream "$up"
wait_port "$started" "$up" 10

count() { # count CLIENT_ERA UPSTREAM_REVISION CALLS   prints the instructions of one run
  printf 'upstreams: { up: { url: "http://127.0.0.1:%s/mcp", revision: "%s", required: true, refresh: 1h } }\n' "$up" "$2" >"$dir/routes.yaml"
  start "$dir/weir.log" env TOKIO_WORKER_THREADS=1 valgrind --tool=callgrind --callgrind-out-file="$dir/out" \
    "$weir" serve --config "$dir/routes.yaml" --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"
  local gateway=$started
  wait_ready "$gateway" "http://127.0.0.1:$admin/readyz" 60 || { cat "$dir/weir.log" >&2; return 1; }
  python3 "$here/instructions.py" calls "$listen" "$1" "$3"
  kill -TERM "$gateway"; sleep 0.2; kill -TERM "$gateway" 2>/dev/null || true
  wait "$gateway" 2>/dev/null || true
  sed -n 's/^summary: //p' "$dir/out"
}

failed=0; : >"$dir/new"
for pair in "modern 2026-07-28" "modern 2025-11-25" "legacy 2026-07-28" "legacy 2025-11-25"; do
  read -r client revision <<<"$pair"
  one=$(count "$client" "$revision" "$few"); two=$(count "$client" "$revision" "$many")
  each=$(((two - one) / (many - few)))
  echo "$client client, $revision upstream: $each" >>"$dir/new"
  kept=$(sed -n "s/^$client client, $revision upstream: //p" "$here/instructions.txt" 2>/dev/null || true)
  if [ -z "$kept" ]; then echo "$pair: $each instructions per call, nothing to compare with"
  elif [ "$each" -gt $((kept * 105 / 100)) ]; then echo "FAIL  $pair: $each instructions per call, $kept are kept"; failed=1
  else echo "ok    $pair: $each instructions per call, $kept are kept"; fi
done
if [ "${1:-}" = --keep ]; then cp "$dir/new" "$here/instructions.txt"; failed=0; fi
exit $failed
