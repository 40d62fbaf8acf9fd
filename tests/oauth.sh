#!/usr/bin/env bash
# oauth.sh [CLIENT[:MODE]...]   puts weir behind a real authorization server and lets clients on four SDKs find it by the challenge,
#   register, get a token for reading, call what that does not allow and get a token with more scopes. Then tokens of all kinds without
#   an SDK, new keys of the issuer, and a look for secrets in weir's log. Without arguments: all clients.
# Env: WEIR     the binary (default: the newer of target/debug/weir and target/release/weir)
#      KIT_DIR  folder for installed tools (default .kit); logs and answers go to its folder oauth-results
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/kit/lib/procs.sh"; . "$here/kit/lib/verdicts.sh"
clients=("$@")
[ $# -gt 0 ] || clients=(ts-sdk1:legacy ts-client2:legacy ts-client2:modern py-mcp1:legacy py-mcp2:legacy py-mcp2:modern)
out="$KIT_DIR/oauth-results"; rm -rf "$out"; mkdir -p "$out"
weir=$(find_weir) || exit 2
"$kit/install.sh" "$KIT_DIR" npm-idp npm-clients py-mcp1 py-mcp2 || exit 2

read -r listen admin idp < <(free_ports 3)
url="http://127.0.0.1:$listen/mcp" issuer="http://127.0.0.1:$idp"
: >"$out/issued"   # all codes and tokens of this run
start "$out/idp.log" "$kit/idp/start.sh" "$KIT_DIR" "$idp" "$out/issued"; server=$started
wait_port "$server" "$idp" 60 || give_up "the authorization server did not start" "$out/idp.log"

cat >"$out/routes.yaml" <<EOF
listen: { public_url: "http://127.0.0.1:$listen" }
upstreams: { notes: { builtin: notes, classes: { read: [list], write: [add], destructive: [remove] } } }
access: { jwt: [ { issuer: "$issuer", algorithms: [RS256, ES256] } ] }
telemetry: { log: { level: trace, access: true } }
EOF
start "$out/weir.log" "$weir" serve --config "$out/routes.yaml" --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"; gateway=$started
wait_ready "$gateway" "http://127.0.0.1:$admin/readyz" 30 || give_up "weir ended or was not ready within 30 s" "$out/weir.log"

judge() { # judge FILE CLIENT MODE   looks at the summary that a client printed, prints a verdict per check
  python3 -c '
import json, sys
path, client, mode, url, issuer = sys.argv[1:]
try: seen = json.loads(open(path).read().strip().splitlines()[-1])
except (IndexError, ValueError): sys.exit(f"FAIL  {client}: no summary")
def check(ok, what, got): print(f"ok    {client}: {what}" if ok else f"FAIL  {client}: {what}: {got} {errors}")
errors, step = seen["errors"], seen["step"]
first, *more = seen["asked"] or [None]
scopes = lambda asked: set((asked["scope"] or "").split()) - {"offline_access"}
target = lambda asked: (asked["issuer"], asked["resource"], asked["pkce"]) == (issuer, url, "S256")
revision = seen["protocol"] or ""
check(revision and (revision >= "2026-07-28") == (mode == "modern"), f"connects in a {mode} revision by the challenge alone", revision)
check(first and target(first) and scopes(first) == {"mcp:read"}, "found the issuer and asked it for mcp:read on this resource", first)
check(seen["before"] == ["notes__list"], "lists notes__list alone with the first token", seen["before"])
got = seen["called"]
check(got and not got["isError"] and len(more) == 1 and target(more[0]) and "mcp:write" in scopes(more[0]), f"calls notes__add after one step-up ({step})", [got, more])
kept = "" if seen["kept"] == seen["after"] else ", when it asks past the cache of its SDK"
check(sorted(seen["after"] or []) == ["notes__add", "notes__list"], f"lists notes__add as well{kept}", seen["after"])
check(not errors, "without errors", "")' "$@" "$url" "$issuer"
}

for c in "${clients[@]}"; do
  mode=legacy; case $c in *:*) mode=${c#*:};; esac
  timeout 60 "$kit/clients/run.sh" "$KIT_DIR" "oauth-${c%%:*}" "$url" "$mode" >"$out/${c/:/-}.json" 2>"$out/${c/:/-}.err"
  tally "$(judge "$out/${c/:/-}.json" "$c" "$mode" 2>&1 || echo "FAIL  $c: its summary could not be judged")"
done

tally "$(timeout 120 python3 -B "$kit/clients/oauth_raw.py" "$url" "$issuer" "$server" 2>"$out/raw.err" || echo "FAIL  raw: ended early: $(tail -n 1 "$out/raw.err")")"

if alive "$gateway"; then good "weir still runs"; else bad "weir ended during the run"; fi
stop "$gateway"
tally "$(python3 -c '
import sys
issued, log = (open(path, errors="replace").read() for path in sys.argv[1:])
# Ends of every part: the beginning of a token is the same in all.
pieces = {piece for line in issued.split() for part in line.split(".")[line.count(".") > 0:] for piece in (part[:20], part[-20:])}
leaked = [line for line in log.splitlines() if "eyJhbGciOi" in line or any(piece in line for piece in pieces)]
n = len(issued.split()); ok = n >= 4 and "auth.invalid" in log and not leaked
print("ok   " if ok else "FAIL ", f"none of {n} codes and tokens in the log of weir", "" if ok else leaked[:3])' "$out/issued" "$out/weir.log" 2>&1 || echo "FAIL  the log could not be searched")"
if [ $failed != 0 ]; then echo "--- end of $out/weir.log"; tail -n 40 "$out/weir.log"; fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
