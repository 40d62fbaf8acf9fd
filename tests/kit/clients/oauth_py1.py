"""python mcp 1.x with its OAuthClientProvider, initialize eras: oauth_py1.py URL [legacy]   knows nothing but the URL."""
import sys, anyio, httpx
from datetime import timedelta
from _oauth import CALLBACK, Browser, Store, blank, done, drive, failed
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

browser, store = Browser(), Store(); d = blank(browser); back = {}

async def redirect(url): back.update(await anyio.to_thread.run_sync(browser.go, url))
async def callback(): return back["code"], back["state"]

async def main():
    about = OAuthClientMetadata(client_name="kit py1", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(sys.argv[1], about, store, redirect, callback)
    async with httpx.AsyncClient(auth=auth, timeout=httpx.Timeout(30, read=300)) as h, streamable_http_client(sys.argv[1], http_client=h) as s, ClientSession(s[0], s[1], read_timeout_seconds=timedelta(seconds=30)) as c:
        d["protocol"] = (await c.initialize()).protocolVersion
        async def names(fresh): return [t.name for t in (await c.list_tools()).tools]
        async def call(name, arguments): r = await c.call_tool(name, arguments); return {"isError": r.isError, "content": len(r.content)}
        await drive(d, browser, store, names, call)

try: anyio.run(main)
except BaseException as e: failed(d, e)
done(d)
