# sourced by the scripts in tests: finding weir, ports, starting and ending processes.
# Every process started here is ended by its own id when the script ends, however it ends.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd); kit="$root/tests/kit"
KIT_DIR=${KIT_DIR:-$root/.kit}; mkdir -p "$KIT_DIR"; KIT_DIR=$(cd "$KIT_DIR" && pwd); export KIT_DIR
pids=()

find_weir() { # prints the path of the binary: $WEIR, else the newer of the debug and the release build
  local target=${CARGO_TARGET_DIR:-$root/target} bin
  if [ -n "${WEIR:-}" ]; then bin=$WEIR
  elif [ "$target/release/weir" -nt "$target/debug/weir" ]; then bin=$target/release/weir   # true also where only that exists
  else bin=$target/debug/weir; fi
  [ -x "$bin" ] || { echo "no weir binary at $bin: run cargo build first, or set WEIR" >&2; return 1; }
  realpath "$bin"
}

free_ports() { # free_ports N   prints N different free ports of the loopback address
  python3 -c '
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in held: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])' "$1"
}

start() { # start LOGFILE COMMAND...   in the background; the process id is in $started
  local log=$1; shift
  "$@" </dev/null >"$log" 2>&1 &
  started=$!; pids+=("$started")
}

alive() { kill -0 "$1" 2>/dev/null; }

stop() { # stop PID...   asks, asks again (weir ends at once on the second signal), then insists
  local p i keep=()
  for p in "$@"; do kill -TERM "$p" 2>/dev/null; done
  sleep 0.2
  for p in "$@"; do kill -TERM "$p" 2>/dev/null; done
  for p in "$@"; do
    for i in $(seq 50); do alive "$p" || break; sleep 0.1; done
    alive "$p" && kill -KILL "$p" 2>/dev/null
    wait "$p" 2>/dev/null
  done
  for p in "${pids[@]}"; do case " $* " in *" $p "*) ;; *) keep+=("$p");; esac; done
  pids=("${keep[@]}")
}

stop_all() { [ ${#pids[@]} = 0 ] || stop "${pids[@]}"; }
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

wait_port() { # wait_port PID PORT SECONDS   until somebody listens; fails when the process ends
  local end=$((SECONDS + $3))
  until (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; do
    alive "$1" && [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

wait_ready() { # wait_ready PID URL SECONDS   until URL answers 200; fails when the process ends
  local end=$((SECONDS + $3))
  until python3 -c '
import sys, urllib.request
try: sys.exit(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=2).status != 200)
except Exception: sys.exit(1)' "$2"; do
    alive "$1" && [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}
