#!/usr/bin/env bash
# network.sh   upstreams as the network shows them: HTTP/2 over TLS behind a real nginx, a name that leads elsewhere, a host
# that is gone without a word. The upstream is a second weir with its demonstration. Needs nginx and openssl; the part about
# names needs the right to have a mount namespace of its own, that about the host a network namespace and iproute2; they
# say so where they have not.
# Env: WEIR  the binary (default: the newer of target/debug/weir and target/release/weir)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source kit/lib/procs.sh
source kit/lib/verdicts.sh
command -v nginx >/dev/null || { echo "network.sh needs nginx" >&2; exit 2; }
weir=$(find_weir) || exit 2
dir=$(mktemp -d); host=weir-$$
trap 'stop_all; ip netns del "$host" 2>/dev/null; rm -rf "$dir"' EXIT
read -r demo demo_admin tls front front_admin other other_admin <<<"$(free_ports 7)"

upstream() { # upstream ADDRESS PORT ADMIN_PORT [COMMAND...]   a weir with its demonstration, run by a command
  printf 'listen: { address: "%s:%s", allowed_hosts: [localhost, weir-upstream.test, "%s"] }\nadmin: { address: "%s:%s" }\naccess: open\nupstreams: { clock: { builtin: clock }, notes: { builtin: notes } }\n' \
    "$1" "$2" "$1" "$1" "$3" >"$dir/up-$3.yaml"
  start "$dir/up-$3.log" "${@:4}" "$weir" serve --config "$dir/up-$3.yaml"
  wait_ready "$started" "http://$1:$3/readyz" 15 || give_up "the upstream starts" "$dir/up-$3.log"
}

# --- HTTP/2
cp -r ../certs "$dir/certs" && "$dir/certs/make.sh" --force >"$dir/certs.log" 2>&1 || give_up "certificates" "$dir/certs.log"
upstream 127.0.0.1 "$demo" "$demo_admin"
mkdir -p "$dir/nginx"
cat >"$dir/nginx.conf" <<EOF
daemon off; master_process on; worker_processes 1; pid $dir/nginx.pid; error_log $dir/nginx.err;
events {}
http {
  log_format protocol '\$server_protocol \$request_method \$status';
  access_log $dir/nginx.log protocol;
  client_body_temp_path $dir/nginx/b; proxy_temp_path $dir/nginx/p; fastcgi_temp_path $dir/nginx/f;
  uwsgi_temp_path $dir/nginx/u; scgi_temp_path $dir/nginx/s;
  server {
    listen 127.0.0.1:$tls ssl http2;
    ssl_certificate $dir/certs/server.crt; ssl_certificate_key $dir/certs/server.key;
    location / { proxy_pass http://127.0.0.1:$demo; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 1h; }
  }
}
EOF
nginx_on() { start "$dir/nginx.out" nginx -c "$dir/nginx.conf" -p "$dir"; nginx_pid=$started; wait_port "$nginx_pid" "$tls" 10; }
nginx_on || give_up "nginx starts" "$dir/nginx.err"

front() { # front URL ENV...   a weir before it
  printf 'listen: { address: "127.0.0.1:%s" }\nadmin: { address: "127.0.0.1:%s" }\nupstreams: { up: { url: "%s", withdraw_after: 1m } }\n' \
    "$front" "$front_admin" "$1" >"$dir/front.yaml"
  shift
  start "$dir/front.log" env "$@" "$weir" serve --config "$dir/front.yaml"
  front_pid=$started
  wait_ready "$front_pid" "http://127.0.0.1:$front_admin/readyz" 15 || give_up "the gateway starts" "$dir/front.log"
}
call() { "$weir" call "$@" --url "http://127.0.0.1:$front/mcp" 2>>"$dir/call.err"; }
calls() { # calls N   how many of N calls are answered well
  local n ok=0
  for n in $(seq "$1"); do call up__clock__now '{}' >/dev/null && ok=$((ok + 1)); done
  echo "$ok"
}

front "https://localhost:$tls/mcp" "SSL_CERT_FILE=$dir/certs/ca.pem"
[ "$(calls 5)" = 5 ] && good "calls pass over HTTP/2" || { cat "$dir/front.log"; bad "calls pass over HTTP/2"; }
[ "$(grep -c '^HTTP/2.0' "$dir/nginx.log")" -ge 5 ] && ! grep -q '^HTTP/1' "$dir/nginx.log" \
  && good "every request is one of HTTP/2" || { cat "$dir/nginx.log"; bad "every request is one of HTTP/2"; }
call up__notes__add '{"text":"'"$(head -c 3000 /dev/zero | tr '\0' x)"'"}' >/dev/null && good "a larger body passes" || bad "a larger body passes"
# A graceful restart of nginx ends the connection with GOAWAY: what is asked afterwards goes over another one.
(for n in 1 2 3; do kill -HUP "$(cat "$dir/nginx.pid")"; sleep 0.4; done) & hup=$!
[ "$(calls 20)" = 20 ] && good "no call is lost when the server says GOAWAY" || { tail -5 "$dir/front.log" "$dir/call.err"; bad "no call is lost when the server says GOAWAY"; }
wait "$hup"
stop "$nginx_pid"
call up__clock__now '{}' >/dev/null && bad "a lost server is said to be lost" || good "a lost server is said to be lost"
nginx_on || give_up "nginx starts again" "$dir/nginx.err"
for n in $(seq 100); do call up__clock__now '{}' >/dev/null && break; sleep 0.2; done
[ "$(calls 3)" = 3 ] && good "it is back" || bad "it is back"
stop "$front_pid"
front "https://localhost:$tls/mcp" "SSL_CERT_FILE=/dev/null"
call up__clock__now '{}' >/dev/null && bad "T066: a certificate of nobody is refused" || good "T066: a certificate of nobody is refused"
stop "$front_pid" "$nginx_pid"

# --- C104: a name that leads elsewhere
leads_to() { # leads_to ADDRESS   written in place: the file is bound by its inode
  printf '127.0.0.1 localhost\n%s weir-upstream.test\n' "$1" >"$dir/hosts"
}
front_by_name() { # a weir that looks names up in that file
  printf 'listen: { address: "127.0.0.1:%s" }\nadmin: { address: "127.0.0.1:%s" }\nupstreams: { up: { url: "http://weir-upstream.test:%s/mcp", timeout: { connect: 1s, call: 3s } } }\n' \
    "$front" "$front_admin" "$other" >"$dir/front.yaml"
  start "$dir/front.log" unshare --mount sh -c 'mount --bind "$1" /etc/hosts && exec "$2" serve --config "$3"' sh "$dir/hosts" "$weir" "$dir/front.yaml"
  front_pid=$started
  wait_ready "$front_pid" "http://127.0.0.1:$front_admin/readyz" 15 || give_up "the gateway starts" "$dir/front.log"
}
if unshare --mount true 2>/dev/null; then
  leads_to 127.0.0.2
  upstream 127.0.0.2 "$other" "$other_admin"; first=$started
  front_by_name
  [ "$(calls 3)" = 3 ] && good "C104: calls reach the first address" || { cat "$dir/front.log"; bad "C104: calls reach the first address"; }
  stop "$first"
  call up__clock__now '{}' >/dev/null && bad "C104: it is gone" || good "C104: it is gone"
  leads_to 127.0.0.3
  upstream 127.0.0.3 "$other" "$other_admin"; second=$started
  for n in $(seq 50); do call up__clock__now '{}' >/dev/null && break; sleep 0.2; done
  [ "$(calls 3)" = 3 ] && good "C104: calls reach the address that the name leads to now" || { tail -5 "$dir/front.log"; bad "C104: calls reach the address that the name leads to now"; }
  stop "$front_pid" "$second"
else
  echo "skip  C104: no mount namespace of its own can be had here"
fi

# --- C104: the host behind the name says nothing any more: no refusal, no end of a connection
silent=10.213.57.2
lone_host() { # a host of its own behind a cable, whose hardware address the gateway's side knows for good
  ip netns add "$host" && ip link add weir0 type veth peer name weir1 netns "$host" && ip addr add 10.213.57.1/30 dev weir0 &&
    ip link set weir0 up && ip -n "$host" link set lo up && ip -n "$host" addr add "$silent/30" dev weir1 && ip -n "$host" link set weir1 up &&
    ip neigh replace "$silent" lladdr "$(ip -n "$host" -o link show weir1 | sed 's/.*link.ether \([^ ]*\).*/\1/')" dev weir0 nud permanent
}
added() { call up__notes__add "{\"text\":\"$1\"}" >/dev/null; }
if unshare --mount true 2>/dev/null && lone_host 2>"$dir/host.err"; then
  leads_to "$silent"
  upstream "$silent" "$other" "$other_admin" ip netns exec "$host"; first=$started
  front_by_name
  [ "$(calls 3)" = 3 ] && good "C104: calls reach the host" || { cat "$dir/front.log"; bad "C104: calls reach the host"; }
  ip -n "$host" addr del "$silent/30" dev weir1
  begin=$SECONDS
  added early && bad "C104: the host is silent" || good "C104: the host is silent"
  [ $((SECONDS - begin)) -le 8 ] && good "C104: a call into the silence ends at its limit" || bad "C104: a call into the silence ends at its limit"
  upstream 127.0.0.4 "$other" "$other_admin"; second=$started
  leads_to 127.0.0.4
  begin=$SECONDS
  until added late || [ $((SECONDS - begin)) -gt 60 ]; do sleep 0.2; done
  [ $((SECONDS - begin)) -le 20 ] && good "C104: a few seconds later calls reach the other host" || { tail -5 "$dir/front.log"; bad "C104: $((SECONDS - begin)) seconds until calls reach the other host"; }
  [ "$(calls 5)" = 5 ] && good "C104: and they go on" || bad "C104: and they go on"
  lists=$(call up__notes__list '{}')
  [ "$(grep -o late <<<"$lists" | wc -l)" = 1 ] && ! grep -q early <<<"$lists" && good "C104: nothing was executed twice" || { echo "$lists"; bad "C104: nothing was executed twice"; }
  # The stream of changes that stood to the first host is silent too; another one takes its place.
  sed -i 's/upstreams: {/upstreams: { more: { builtin: clock },/' "$dir/up-$other_admin.yaml"
  begin=$SECONDS
  until "$weir" list --url "http://127.0.0.1:$front/mcp" 2>/dev/null | grep -q up__more__now || [ $((SECONDS - begin)) -gt 90 ]; do sleep 0.5; done
  [ $((SECONDS - begin)) -le 45 ] && good "C104: changes there are heard of" || { tail -5 "$dir/front.log"; bad "C104: $((SECONDS - begin)) seconds until a change there was heard of"; }
  stop "$front_pid" "$second"
else
  cat "$dir/host.err" 2>/dev/null
  echo "skip  C104: no network namespace can be had here"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
