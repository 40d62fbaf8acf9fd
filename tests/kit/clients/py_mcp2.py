"""python mcp 2.x client. --mode auto probes server/discover and falls back; legacy: initialize; modern: 2026-07-28 only."""
import anyio, httpx2
from _common import Out, args, calls, text
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

a = args(); out = Out("python mcp 2.x"); d = out.d

async def msg(m):
    meth = getattr(m, "method", None) or getattr(getattr(m, "root", None), "method", "")
    if str(meth).endswith("list_changed"): d["list_changed"].append(meth)
async def elicit(ctx, p): return types.ElicitResult(action="accept", content={"name": "kit", "value": "kit"})
async def sample(ctx, p): return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="sampled"), model="kit")

async def main():
    target = a.url
    if a.sse:
        from mcp.client.sse import sse_client
        target = sse_client(a.url, headers={"Authorization": f"Bearer {a.bearer}"} if a.bearer else None)
    elif a.bearer: target = streamable_http_client(a.url, http_client=httpx2.AsyncClient(headers={"Authorization": f"Bearer {a.bearer}"}, timeout=httpx2.Timeout(30, read=300), follow_redirects=True))
    mode = {"modern": "2026-07-28"}.get(a.mode, a.mode)
    async with Client(target, mode=mode, read_timeout_seconds=30, message_handler=msg, elicitation_callback=elicit, sampling_callback=sample) as c:
        d["protocol"] = c.protocol_version; d["server"] = c.server_info.name if c.server_info else None; caps = c.server_capabilities
        tools, lc = [], anyio.Event()
        async def listen():
            try:
                async with c.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True) as sub:
                    lc.set()
                    async for ev in sub: d["list_changed"].append(type(ev).__name__)
            except Exception as e:
                lc.set(); out.err("subscriptions/listen", e)
        async with anyio.create_task_group() as tg:
            if a.wait and d["protocol"] >= "2026-07-28": tg.start_soon(listen); await lc.wait()
            try:
                cur = None
                while True:
                    p = await c.list_tools(cursor=cur) if cur else await c.list_tools(); d["pages"] += 1; tools += p.tools; cur = p.next_cursor
                    if not cur: break
                d["tools"] = len(tools); d["names"] = [t.name for t in tools]
            except Exception as e: out.err("tools/list", e)
            for trigger, choose in calls(a, [(t.name, t.input_schema) for t in tools]):
                try:
                    n, ar = choose(); r = await c.call_tool(n, ar)
                    if not trigger: d["called"].append({"name": n, "isError": r.is_error, "text": text(r.content)})
                except Exception as e: out.err("tools/call", e)
            if a.mode == "modern" or (caps and caps.resources):   # pinned to one version this client never asks server/discover, so knows no capabilities
                try:
                    r = (await c.list_resources()).resources; d["resources"] = len(r); d["templates"] = len((await c.list_resource_templates()).resource_templates)
                    if r: x = await c.read_resource(r[0].uri); d["read"] = {"uri": str(r[0].uri), "contents": len(x.contents)}
                except Exception as e: out.err("resources", e)
            if a.mode == "modern" or (caps and caps.prompts):
                try:
                    p = (await c.list_prompts()).prompts; d["prompts"] = len(p); q = next((x for x in p if not any(g.required for g in x.arguments or [])), None)
                    if q: d["got"] = {"name": q.name, "messages": len((await c.get_prompt(q.name)).messages)}
                except Exception as e: out.err("prompts", e)
            await anyio.sleep(a.wait); tg.cancel_scope.cancel()

try: anyio.run(main)
except BaseException as e: out.err("connect", e)
out.done()
