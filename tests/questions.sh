#!/usr/bin/env bash
# questions.sh   lets servers on the Python SDK ask clients on the TypeScript SDK through one weir, and the other way round: for a form
#   (elicitation) and for the model (sampling), in every pair of eras. A check passes when the call's result holds what the client answered.
# Env: WEIR     the binary (default: the newer of target/debug/weir and target/release/weir)
#      KIT_DIR  folder for installed tools (default .kit); logs and answers go to its folder question-results
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/kit/lib/procs.sh"; . "$here/kit/lib/verdicts.sh"
upstreams=("py-legacy:conformance --era legacy" "py-modern:conformance --era modern" ts-legacy:ts1-http ts-modern:ts2-http)   # name:start script
to_py=(test_elicitation '{"message":"your name?"}' '"name": "kit"' test_sampling '{"prompt":"say something"}' sampled)   # tool, arguments, answer
to_ts=(ask_form '{}' '"name":"kit"' ask_model '{}' sampled)
out="$KIT_DIR/question-results"; rm -rf "$out"; mkdir -p "$out"
weir=$(find_weir) || exit 2
"$kit/install.sh" "$KIT_DIR" npm-clients npm-ask py-mcp1 py-mcp2 || exit 2

# The upstreams. Each speaks one era and refuses the other; weir is told nothing about that.
read -r listen admin first < <(free_ports $((${#upstreams[@]} + 2))); read -ra ports <<<"$first"
echo "upstreams:" >"$out/routes.yaml"
running=()
for i in "${!upstreams[@]}"; do
  name=${upstreams[i]%%:*}; read -r script flags <<<"${upstreams[i]#*:}"
  start "$out/upstream-$name.log" "$kit/upstreams/$script.sh" "$KIT_DIR" "${ports[i]}" $flags; running+=("$started")
  printf '  %s: { url: "http://127.0.0.1:%s/mcp", required: true }\n' "$name" "${ports[i]}" >>"$out/routes.yaml"
done
for i in "${!upstreams[@]}"; do
  name=${upstreams[i]%%:*}
  wait_port "${running[i]}" "${ports[i]}" 60 || give_up "upstream $name did not start" "$out/upstream-$name.log"
done

start "$out/weir.log" "$weir" serve --config "$out/routes.yaml" --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"; gateway=$started
wait_ready "$gateway" "http://127.0.0.1:$admin/readyz" 30 || give_up "weir ended or was not ready within 30 s" "$out/weir.log"


# Weir must have found the era that each upstream is named after, else the pairs below are not what they say.
tally "$(python3 -c '
import json, sys, urllib.request
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=5) as answer: found = json.load(answer)["upstreams"]
for u in found: print("ok   " if u["name"].endswith("-" + u["era"]) else "FAIL ", "weir speaks", u["revision"], "to", u["name"])' "http://127.0.0.1:$admin/api/status" 2>&1 || echo "FAIL  no status of the upstreams")"

judge() { # judge FILE CLIENT MODE [NAME TEXT]...   looks at the summary that a client printed, prints a verdict per check
  python3 -c '
import json, sys
path, client, mode, *rest = sys.argv[1:]
def check(ok, what, got=""): print(f"ok    {client}: {what}" if ok else f"FAIL  {client}: {what}: {got}")
try: seen = json.loads(open(path).read().strip().splitlines()[-1])
except (IndexError, ValueError): seen = {"protocol": None, "called": [], "errors": ["no summary"]}
revision = seen["protocol"] or ""
check(revision and (revision >= "2026-07-28") == (mode == "modern") and not seen["errors"], f"speaks a {mode} revision, without errors", [revision, *seen["errors"]])
for name, text in zip(rest[::2], rest[1::2]):
    got = next((c for c in seen["called"] if c["name"] == name), None)
    check(got and not got["isError"] and text in (got["text"] or ""), f"answers {name}", got or seen["errors"])' "$@"
}

ask() { # ask DIRECTION CLIENT[:MODE]...   each client calls the tools of both eras in one connection and answers what they ask
  local side=$1 c mode era i options expected tools; shift
  if [ "$side" = py ]; then tools=("${to_py[@]}"); else tools=("${to_ts[@]}"); fi
  options=() expected=()
  for era in legacy modern; do for ((i = 0; i < ${#tools[@]}; i += 3)); do
    options+=(--tool "$side-${era}__${tools[i]}" --args "${tools[i + 1]}"); expected+=("$side-${era}__${tools[i]}" "${tools[i + 2]}")
  done; done
  for c in "$@"; do
    mode=legacy; case $c in *:*) mode=${c#*:};; esac
    timeout 60 "$kit/clients/run.sh" "$KIT_DIR" "${c%%:*}" "http://127.0.0.1:$listen/mcp" --mode "$mode" "${options[@]}" >"$out/${c/:/-}.json" 2>"$out/${c/:/-}.err"
    tally "$(judge "$out/${c/:/-}.json" "$c" "$mode" "${expected[@]}" || echo "FAIL  $c: its summary could not be judged")"
  done
}

ask py ts-sdk1 ts-client2:legacy ts-client2:modern
ask ts py-mcp1 py-mcp2:legacy py-mcp2:modern

if alive "$gateway"; then good "weir still runs"; else bad "weir ended during the run"; fi
if [ $failed != 0 ]; then echo "--- end of $out/weir.log"; tail -n 40 "$out/weir.log"; fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
