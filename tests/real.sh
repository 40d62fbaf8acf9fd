#!/usr/bin/env bash
# real.sh [CLIENT[:MODE]...]   puts one weir in front of ten real servers, of both eras, the oldest transport and three children, on four SDKs, and lets
#   real clients list and call through it; then the commands `weir list` and `weir call`. Without arguments: all clients.
# Env: WEIR     the binary (default: the newer of target/debug/weir and target/release/weir)
#      KIT_DIR  folder for installed tools (default .kit); logs and answers go to its folder real-results
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/kit/lib/procs.sh"; . "$here/kit/lib/verdicts.sh"
clients=("$@")
[ $# -gt 0 ] || clients=(py-mcp1 py-mcp2:auto py-mcp2:legacy py-mcp2:modern py-fastmcp:auto py-fastmcp:legacy py-fastmcp:modern
  ts-sdk1 ts-client2:legacy ts-client2:auto ts-client2:modern inspector py-mcp1:sse ts-sdk1:sse rmcp:auto rmcp:legacy rmcp:modern)
upstreams=(everything:everything-http fast:fastmcp4-http mcp2:mcp2-http mcp1:mcp1-http rmcp:rmcp-http
  old-everything:everything-sse old-mcp1:mcp1-sse)   # name:start script
children=(child-everything:everything-stdio child-mcp2:mcp2-stdio child-mcp1:mcp1-stdio)   # weir starts these itself
calls=( # published name, arguments, expected text
  everything__echo '{"message":"hi"}' 'Echo: hi'
  fast__add '{"a":20,"b":3}' 23
  fast__weather_get '{"city":"Rome"}' '{"city":"Rome","sky":"clear"}'
  mcp2__echo '{"text":"two"}' two
  mcp1__add '{"a":1,"b":41}' 42
  rmcp__echo '{"text":"rust"}' rust
  old-everything__echo '{"message":"old"}' 'Echo: old'
  old-mcp1__add '{"a":40,"b":2}' 42
  child-everything__echo '{"message":"child"}' 'Echo: child'
  child-mcp2__echo '{"text":"pipe"}' pipe
  child-mcp1__add '{"a":39,"b":3}' 42
)
out="$KIT_DIR/real-results"; rm -rf "$out"; mkdir -p "$out"
weir=$(find_weir) || exit 2
"$kit/install.sh" "$KIT_DIR" npm-servers npm-clients inspector py-mcp1 py-mcp2 py-fastmcp rmcp-server rmcp-client || exit 2

# The upstreams, and what a client sees of each without weir.
read -r listen admin first < <(free_ports $((${#upstreams[@]} + 2))); read -ra ports <<<"$first"
echo "upstreams:" >"$out/routes.yaml"
running=() paths=() bare=()
for i in "${!upstreams[@]}"; do
  name=${upstreams[i]%%:*} script=${upstreams[i]##*:}
  start "$out/upstream-$name.log" "$kit/upstreams/$script.sh" "$KIT_DIR" "${ports[i]}"; running+=("$started")
  case $script in *-sse) paths[i]=sse bare[i]=--sse;; *) paths[i]=mcp bare[i]=;; esac
  printf '  %s: { url: "http://127.0.0.1:%s/%s", required: true }\n' "$name" "${ports[i]}" "${paths[i]}" >>"$out/routes.yaml"
done
for i in "${!upstreams[@]}"; do
  name=${upstreams[i]%%:*}
  wait_port "${running[i]}" "${ports[i]}" 60 || give_up "upstream $name did not start" "$out/upstream-$name.log"
  "$kit/clients/run.sh" "$KIT_DIR" py-mcp1 "http://127.0.0.1:${ports[i]}/${paths[i]}" ${bare[i]} >"$out/bare-$name.json" 2>"$out/bare-$name.err" \
    || give_up "upstream $name does not answer without weir" "$out/bare-$name.json"
done

for child in "${children[@]}"; do
  printf '  %s: { command: ["%s", "%s"], required: true }\n' "${child%%:*}" "$kit/upstreams/${child##*:}.sh" "$KIT_DIR" >>"$out/routes.yaml"
  # A child offers what the same server offers over HTTP; server-everything less, to who can be asked nothing.
  name=${child%%:*}; [ "$name" = child-everything ] || cp "$out/bare-${name#child-}.json" "$out/bare-$name.json"
done

start "$out/weir.log" "$weir" serve --config "$out/routes.yaml" --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"; gateway=$started
wait_ready "$gateway" "http://127.0.0.1:$admin/readyz" 30 || give_up "weir ended or was not ready within 30 s" "$out/weir.log"
url="http://127.0.0.1:$listen/mcp"

# Each client makes all the calls in one connection; judge.py looks at the summary that it prints.
options=(); for ((i = 0; i < ${#calls[@]}; i += 3)); do options+=(--tool "${calls[i]}" --args "${calls[i + 1]}"); done
for c in "${clients[@]}"; do
  mode=auto; case $c in *:*) mode=${c#*:};; esac
  at=(--mode "$mode"); address=$url
  if [ "$mode" = sse ]; then at=(--sse); address=$url/sse; fi   # HTTP+SSE of 2024-11-05
  timeout 120 "$kit/clients/run.sh" "$KIT_DIR" "${c%%:*}" "$address" "${at[@]}" "${options[@]}" >"$out/${c/:/-}.json" 2>"$out/${c/:/-}.err"
  read -r p f < <(python3 "$kit/lib/judge.py" "$c" "$mode" "$out" "${calls[@]}")
  passed=$((passed + p)); failed=$((failed + f)); cat "$out/${c/:/-}.verdict"
done

# The program's own commands, which are clients too.
timeout 30 "$weir" list --url "$url" >"$out/list.txt" 2>"$out/list.err"; rc=$?
missing=; for ((i = 0; i < ${#calls[@]}; i += 3)); do grep -qw -- "${calls[i]}" "$out/list.txt" || missing+=" ${calls[i]}"; done
if [ $rc = 0 ] && [ -z "$missing" ]; then good "weir list --url"; else bad "weir list --url: exit code $rc, missing:$missing"; fi
text=$(timeout 30 "$weir" call everything__echo '{"message":"hi"}' --url "$url" 2>"$out/call.err"); rc=$?
if [ $rc = 0 ] && [ "$text" = "Echo: hi" ]; then good "weir call everything__echo"; else bad "weir call everything__echo: exit code $rc, printed: $text"; fi
text=$(timeout 30 "$weir" call fast__fail '{}' --url "$url" 2>"$out/call-fail.err"); rc=$?
if [ $rc = 1 ]; then good "weir call of a failing tool"; else bad "weir call of a failing tool: exit code $rc instead of 1, printed: $text"; fi

if alive "$gateway"; then good "weir still runs"; else bad "weir ended during the run"; fi
if [ $failed != 0 ]; then echo "--- end of $out/weir.log"; tail -n 40 "$out/weir.log"; fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
