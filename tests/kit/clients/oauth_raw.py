"""oauth_raw.py URL ISSUER PID   looks at what weir answers to tokens of all kinds, without an SDK, and prints a verdict per check.

URL is weir's, ISSUER the authorization server with the process id PID, which replaces its keys on SIGHUP.
"""
import base64, hashlib, json, os, re, secrets, signal, sys, time, urllib.error, urllib.parse, urllib.request
from _oauth import CALLBACK, Browser

url, issuer, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))

def ask(at, data=None, **headers):
    """Returns status, WWW-Authenticate and the body as JSON, where it is some."""
    try: answer = plain.open(urllib.request.Request(at, data, headers), timeout=10)
    except urllib.error.HTTPError as e: answer = e
    with answer:
        text = answer.read()
        try: body = json.loads(text)
        except ValueError: body = None
        return answer.status, answer.headers.get("WWW-Authenticate", ""), body

def form(at, **fields): return ask(at, urllib.parse.urlencode(fields).encode())[2]

def call(token, method="tools/list", **params):
    """A stateless request, with a token or without."""
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if "name" in params: headers["Mcp-Name"] = params["name"]
    if token: headers["Authorization"] = f"Bearer {token}"
    return ask(url, body, **headers)

about = ask(f"{issuer}/.well-known/oauth-authorization-server")[2]
client = ask(about["registration_endpoint"], json.dumps({"redirect_uris": [CALLBACK], "application_type": "native"}).encode(), **{"Content-Type": "application/json"})[2]["client_id"]
browser = Browser()

def token(scope, resource=url):
    """A new access token, by an authorization code."""
    verifier = secrets.token_urlsafe(48); challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    common = {"client_id": client, "redirect_uri": CALLBACK, "resource": resource}
    back = browser.go(about["authorization_endpoint"] + "?" + urllib.parse.urlencode({**common, "response_type": "code", "scope": scope, "code_challenge": challenge, "code_challenge_method": "S256"}))
    return form(about["token_endpoint"], **common, grant_type="authorization_code", code=back["code"], code_verifier=verifier)["access_token"]

def decoded(part): return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
def parameters(challenge): return dict(re.findall(r'(\w+)="([^"]*)"', challenge)) if challenge.startswith("Bearer ") else {}
def names(body): return sorted(t["name"] for t in body["result"]["tools"]) if body and "result" in body else None

def check(ok, what, got): print(f"ok    raw: {what}" if ok else f"FAIL  raw: {what}: {got}", flush=True)

status, challenge, _ = answer = call(None); at = parameters(challenge).get("resource_metadata")
check(status == 401 and at and "error" not in parameters(challenge), "a request without a token is 401 with resource_metadata and no error", answer)
found = ask(at) if at else None
check(found and found[0] == 200 and found[2] and found[2].get("authorization_servers") == [issuer] and found[2].get("resource") == url, "the metadata there names the issuer and the resource", found)

reads = token("mcp:read"); answer = call(reads); algorithm = decoded(reads.split(".")[0])["alg"]
check(answer[0] == 200 and names(answer[2]) == ["notes__list"], f"a token with mcp:read ({algorithm}) lists notes__list alone", answer)
answer = call(reads, "tools/call", name="notes__add", arguments={"text": "x"}); told = parameters(answer[1])
check(answer[0] == 403 and told == {"error": "insufficient_scope", "scope": "mcp:write", "resource_metadata": at}, "a call of notes__add with it is 403 with insufficient_scope, scope and resource_metadata", answer)

def refused(what, bad):
    answer = call(bad); told = parameters(answer[1])
    check(answer[0] == 401 and told.get("error") == "invalid_token" and told.get("resource_metadata") == at, f"{what} is 401 with invalid_token", answer)

refused("a token for another resource", token("mcp:read", url + "/other"))
head, claims, signature = reads.split(".")
more = base64.urlsafe_b64encode(json.dumps({**decoded(claims), "scope": "mcp:destructive"}).encode()).decode().rstrip("=")
refused("a token whose scope was changed", f"{head}.{more}.{signature}")
refused("a token whose signature was changed", f"{head}.{claims}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}")
unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"at+jwt"}').decode().rstrip("=")
refused("a token without a signature", f"{unsigned}.{claims}.")

# New keys: the first token with one has weir ask the issuer, which it does at most every 30 seconds, so nothing above may have done it.
def kids(): return {k["kid"] for k in ask(about["jwks_uri"])[2]["keys"]}
old = kids(); os.kill(pid, signal.SIGHUP); end = time.monotonic() + 10
while kids() & old and time.monotonic() < end: time.sleep(0.1)
fresh = token("mcp:read"); header = decoded(fresh.split(".")[0])
check(header["kid"] not in old and header["alg"] != algorithm, f"the issuer has new keys and signs with {header['alg']}", header)
answer = call(fresh)
check(answer[0] == 200 and names(answer[2]) == ["notes__list"], "the first token with a new key is accepted", answer)
refused("a token of a key that is gone", reads)
answer = call(fresh)
check(answer[0] == 200, "the token with the new key is still accepted", answer)
