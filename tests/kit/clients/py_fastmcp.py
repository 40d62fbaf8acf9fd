"""fastmcp 4.x client. --mode auto|legacy|modern; --sse for HTTP+SSE."""
import anyio
from _common import Out, args, calls, text
from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import SSETransport, StreamableHttpTransport

a = args(); out = Out("fastmcp 4.x"); d = out.d

class H(MessageHandler):
    async def on_tool_list_changed(self, m): d["list_changed"].append("tools")
    async def on_prompt_list_changed(self, m): d["list_changed"].append("prompts")
    async def on_resource_list_changed(self, m): d["list_changed"].append("resources")
async def elicit(message, response_type, params, ctx):
    f = getattr(response_type, "__dataclass_fields__", None) or getattr(response_type, "model_fields", None)
    return response_type(**{k: "kit" for k in f}) if f else {"name": "kit", "value": "kit"}

async def main():
    t = (SSETransport if a.sse else StreamableHttpTransport)(a.url, headers={"Authorization": f"Bearer {a.bearer}"} if a.bearer else None)
    async with Client(t, mode={"modern": "2026-07-28"}.get(a.mode, a.mode), timeout=30, message_handler=H(), elicitation_handler=elicit) as c:
        d["protocol"] = c.protocol_version; d["server"] = c.server_info.name if c.server_info else None; caps = c.server_capabilities; tools = []
        try:
            cur = None
            while True:
                p = await c.list_tools_mcp(cursor=cur) if cur else await c.list_tools_mcp(); d["pages"] += 1; tools += p.tools; cur = p.next_cursor
                if not cur: break
            d["tools"] = len(tools); d["names"] = [t.name for t in tools]
        except Exception as e: out.err("tools/list", e)
        for trigger, choose in calls(a, [(t.name, t.input_schema) for t in tools]):
            try:
                n, ar = choose(); r = await c.call_tool_mcp(n, ar)
                if not trigger: d["called"].append({"name": n, "isError": r.is_error, "text": text(r.content)})
            except Exception as e: out.err("tools/call", e)
        if a.mode == "modern" or (caps and caps.resources):   # pinned to one version this client never asks server/discover, so knows no capabilities
            try:
                r = await c.list_resources(); d["resources"] = len(r); d["templates"] = len(await c.list_resource_templates())
                if r: x = await c.read_resource(r[0].uri); d["read"] = {"uri": str(r[0].uri), "contents": len(x)}
            except Exception as e: out.err("resources", e)
        if a.mode == "modern" or (caps and caps.prompts):
            try:
                p = await c.list_prompts(); d["prompts"] = len(p); q = next((x for x in p if not any(g.required for g in x.arguments or [])), None)
                if q: d["got"] = {"name": q.name, "messages": len((await c.get_prompt(q.name)).messages)}
            except Exception as e: out.err("prompts", e)
        await anyio.sleep(a.wait)

try: anyio.run(main)
except BaseException as e: out.err("connect", e)
out.done()
