"""What the Python clients with OAuth share: a browser without a human, a store for credentials, the summary."""
import http.cookiejar, json, sys, urllib.error, urllib.parse, urllib.request

CALLBACK = "http://127.0.0.1:9/callback"   # nobody listens; the browser stops before it

class Browser:
    """Follows an authorization to its end with plain HTTP and cookies."""
    def __init__(self):
        self.asked, self.found = [], None
        browser = self
        class Redirects(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, req, fp, code, msg, headers, newurl):
                if newurl.startswith(CALLBACK): browser.found = newurl; return None
                return super().redirect_request(req, fp, code, msg, headers, newurl)
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Redirects(), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def go(self, url):
        """Returns the parameters that the callback would get."""
        at = urllib.parse.urlsplit(url); query = dict(urllib.parse.parse_qsl(at.query))
        self.asked.append({"issuer": f"{at.scheme}://{at.netloc}", "scope": query.get("scope"), "resource": query.get("resource"), "pkce": query.get("code_challenge_method")})
        self.found = None
        try: self.opener.open(url, timeout=10).close()
        except urllib.error.HTTPError as e:
            if not self.found: raise RuntimeError(f"authorization ended with HTTP {e.code} at {e.url}: {e.read()[:200]}")
        if not self.found: raise RuntimeError("authorization did not lead back")
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.found).query))

class Store:
    """TokenStorage of the SDKs. It begins empty."""
    def __init__(self): self.tokens = self.client = None
    async def get_tokens(self): return self.tokens
    async def set_tokens(self, tokens): self.tokens = tokens
    async def get_client_info(self): return self.client
    async def set_client_info(self, client): self.client = client

async def drive(d, browser, store, names, call):
    """Lists, calls what the token may not, lists again, also past a cache of the SDK. names(fresh) and call() speak through the SDK."""
    d["before"] = await names(False); d["granted"].append(store.tokens.scope)
    d["called"] = await call("notes__add", {"text": "kept by a test"})
    d["step"] = "the SDK steps up within the call" if len(browser.asked) > 1 else "no step-up was needed"
    d["kept"] = await names(False); d["after"] = await names(True); d["granted"].append(store.tokens.scope)

def blank(browser): return {"protocol": None, "before": None, "called": None, "kept": None, "after": None, "step": None, "asked": browser.asked, "granted": [], "errors": []}

def failed(d, e):
    while getattr(e, "exceptions", None): e = e.exceptions[0]
    d["errors"].append(f"{type(e).__name__}: {e}"[:300])

def done(d):
    print(json.dumps(d, ensure_ascii=False)); sys.stdout.flush(); sys.exit(1 if d["errors"] else 0)
