#!/usr/bin/env bash
# conformance-client.sh [REVISION...]   The client scenarios of the official suite, for Weir's upstream side.
#   For each scenario the suite starts a mock server; Weir stands in front of it, a reference client performs the
#   scenario's calls through Weir, and the mock judges what Weir sent. Scenarios about OAuth are left out: Weir sends
#   configured credentials to its upstreams.
#   REVISION: 2025-11-25 2026-07-28 (both without an argument)
# Env: WEIR (the binary), KIT_DIR (where tools are installed, default .kit)
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export KIT_DIR=${KIT_DIR:-$root/.kit} KIT_SKIP=auth/
WEIR=${WEIR:-$root/target/debug/weir}
[ -x "$WEIR" ] || { echo "no binary at $WEIR: build it, or set WEIR" >&2; exit 64; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat > "$work/gateway" <<GATEWAY
#!/usr/bin/env bash
folder=\$(mktemp -d "$work/weir-XXXXXX")
printf 'upstreams: { up: { url: "%s", namespace: "" } }\n' "\$UPSTREAM_URL" > "\$folder/routes.yaml"
exec "$WEIR" serve --config "\$folder/routes.yaml" --listen "127.0.0.1:\$PORT" --admin 127.0.0.1:0
GATEWAY
chmod +x "$work/gateway"
passed=0 failed=0
[ $# -gt 0 ] || set -- 2025-11-25 2026-07-28
for revision in "$@"; do
  echo "=== upstream side, $revision"
  out="$KIT_DIR/conformance-results/client-$revision"; rm -rf "$out"
  if KIT_OUT=$out KIT_GATEWAY="exec $work/gateway" \
    "$root/tests/kit/conformance-client.sh" "$revision" "$root/tests/kit/gateway-as-client.sh"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
