"""python mcp 2.x with its OAuthClientProvider: oauth_py2.py URL legacy|modern   knows nothing but the URL."""
import sys, anyio, httpx2
from _oauth import CALLBACK, Browser, Store, blank, done, drive, failed
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

browser, store = Browser(), Store(); d = blank(browser); back = {}

async def redirect(url): back.update(await anyio.to_thread.run_sync(browser.go, url))
async def callback(): return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back.get("iss"))

async def main():
    about = OAuthClientMetadata(client_name="kit py2", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(sys.argv[1], about, store, redirect, callback)
    mode = {"modern": "2026-07-28"}.get(sys.argv[2], sys.argv[2])
    async with httpx2.AsyncClient(auth=auth, timeout=httpx2.Timeout(30, read=300)) as h, Client(streamable_http_client(sys.argv[1], http_client=h), mode=mode, read_timeout_seconds=30) as c:
        d["protocol"] = c.protocol_version
        async def names(fresh): return [t.name for t in (await c.list_tools(cache_mode="refresh" if fresh else "use")).tools]
        async def call(name, arguments): r = await c.call_tool(name, arguments); return {"isError": r.is_error, "content": len(r.content)}
        await drive(d, browser, store, names, call)

try: anyio.run(main)
except BaseException as e: failed(d, e)
done(d)
