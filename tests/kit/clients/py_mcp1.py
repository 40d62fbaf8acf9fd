"""python mcp 1.x client: initialize eras, Streamable HTTP or --sse."""
import anyio
from contextlib import asynccontextmanager
from datetime import timedelta
from _common import Out, args, calls, text
from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

a = args(); out = Out("python mcp 1.x"); d = out.d

async def msg(m):
    if isinstance(m, types.ServerNotification) and m.root.method.endswith("list_changed"): d["list_changed"].append(m.root.method)
async def elicit(ctx, p): return types.ElicitResult(action="accept", content={"name": "kit", "value": "kit"})
async def sample(ctx, p): return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="sampled"), model="kit")

async def main():
    h = {"Authorization": f"Bearer {a.bearer}"} if a.bearer else None
    cm = sse_client(a.url, headers=h) if a.sse else streamablehttp_client(a.url, headers=h)
    async with cm as s, ClientSession(s[0], s[1], read_timeout_seconds=timedelta(seconds=30), message_handler=msg, elicitation_callback=elicit, sampling_callback=sample) as c:
        r = await c.initialize(); d["protocol"] = r.protocolVersion; d["server"] = r.serverInfo.name; caps = r.capabilities
        tools = []
        try:
            cur = None
            while True:
                p = await c.list_tools(params=types.PaginatedRequestParams(cursor=cur) if cur else None); d["pages"] += 1; tools += p.tools; cur = p.nextCursor
                if not cur: break
            d["tools"] = len(tools); d["names"] = [t.name for t in tools]
        except Exception as e: out.err("tools/list", e)
        for trigger, choose in calls(a, [(t.name, t.inputSchema) for t in tools]):
            try:
                n, ar = choose(); r = await c.call_tool(n, ar)
                if not trigger: d["called"].append({"name": n, "isError": r.isError, "text": text(r.content)})
            except Exception as e: out.err("tools/call", e)
        if caps.resources:
            try:
                r = (await c.list_resources()).resources; d["resources"] = len(r); d["templates"] = len((await c.list_resource_templates()).resourceTemplates)
                if r: x = await c.read_resource(r[0].uri); d["read"] = {"uri": str(r[0].uri), "contents": len(x.contents)}
            except Exception as e: out.err("resources", e)
        if caps.prompts:
            try:
                p = (await c.list_prompts()).prompts; d["prompts"] = len(p); q = next((x for x in p if not any(g.required for g in x.arguments or [])), None)
                if q: d["got"] = {"name": q.name, "messages": len((await c.get_prompt(q.name)).messages)}
            except Exception as e: out.err("prompts", e)
        await anyio.sleep(a.wait)

try: anyio.run(main)
except BaseException as e: out.err("connect", e)
out.done()
