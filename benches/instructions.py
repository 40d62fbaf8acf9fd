"""The load for instructions.sh: an upstream of both eras, and one client that makes calls one after the other.

instructions.py upstream PORT          serves until it is ended
instructions.py calls PORT ERA COUNT   makes so many calls, each answer checked
"""
import asyncio, json, re, socket, sys

MODERN = "2026-07-28"


async def serve(reader, writer):
    while True:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return
        length = re.search(r"content-length: *(\d+)", head, re.I)
        body = (await reader.readexactly(int(length[1]))).decode() if length else ""
        writer.write(answer(head, body).encode())
        await writer.drain()


def answer(head, body):
    if not head.startswith("POST"):
        return "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
    asked = json.loads(body)
    modern = "io.modelcontextprotocol/protocolVersion" in body
    more = {"resultType": "complete"} if modern else {}
    cached = {"ttlMs": 60000, "cacheScope": "public"} if modern else {}
    results = {
        "tools/call": {"content": [{"type": "text", "text": "x" * 64}], **more},
        "tools/list": {"tools": [{"name": "big", "inputSchema": {"type": "object"}}], **more, **cached},
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "load", "version": "1"}},
        "server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **more, **cached},
    }
    if asked["method"] not in results or "id" not in asked:
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
    text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}, separators=(",", ":"))
    session = "mcp-session-id: load\r\n" if asked["method"] == "initialize" else ""
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {len(text)}\r\n\r\n{text}"


class Client:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def ask(self, head, body):
        text = json.dumps(body, separators=(",", ":"))
        self.file.write(
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\n{head}content-length: {len(text)}\r\n\r\n{text}".encode()
        )
        self.file.flush()
        answered = {}
        status = self.file.readline().split()[1]
        while (line := self.file.readline().decode().strip()):
            name, value = line.split(": ", 1)
            answered[name.lower()] = value
        return status, answered, self.file.read(int(answered.get("content-length", 0))).decode()


def calls(port, era, count):
    client = Client(port)
    params = {"name": "up__big", "arguments": {"bytes": 64}}
    if era == "modern":
        head = f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: up__big\r\n"
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    else:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        _, answered, _ = client.ask("", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        head = f"mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {answered['mcp-session-id']}\r\n"
        client.ask(head, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    for _ in range(count):
        status, _, body = client.ask(head, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        assert status == b"200" and '"text":"xxx' in body, (status, body)


async def upstream(port):
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()


if sys.argv[1] == "upstream":
    asyncio.run(upstream(int(sys.argv[2])))
else:
    calls(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
