// @modelcontextprotocol/sdk 1.x upstream with sessions: the initialize eras only. ts1_server.mjs PORT
// Both tools ask the client, on the stream of the call, and answer with what it said.
import { createServer } from 'node:http'; import { randomUUID } from 'node:crypto'; import { createRequire } from 'node:module'; import { pathToFileURL } from 'node:url';
const req = createRequire(process.env.KIT_NODE_MODULES + '/x.js'); const imp = (p) => import(pathToFileURL(req.resolve(p)).href);
const { McpServer } = await imp('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await imp('@modelcontextprotocol/sdk/server/streamableHttp.js');

const text = (s) => ({ content: [{ type: 'text', text: s }] });
function build() {
  const mcp = new McpServer({ name: 'ts1', version: '1' });
  mcp.registerTool('ask_form', { description: 'Asks the user for a name' }, async (extra) => {
    const a = await mcp.server.elicitInput({ message: 'your name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } }, { relatedRequestId: extra.requestId });
    return text(`${a.action}: ${JSON.stringify(a.content)}`);
  });
  mcp.registerTool('ask_model', { description: "Asks the client's model" }, async (extra) => {
    const a = await mcp.server.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'say something' } }], maxTokens: 100 }, { relatedRequestId: extra.requestId });
    return text(`${a.model}: ${a.content.text}`);
  });
  return mcp;
}

const sessions = new Map();   // session id -> transport; every session has a server of its own
createServer(async (request, response) => {
  const id = request.headers['mcp-session-id'];
  let transport = sessions.get(id);
  if (!transport) {
    if (request.url !== '/mcp' || id) { response.writeHead(404).end(); return; }
    transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (s) => { sessions.set(s, transport); } });   // refuses what is not initialize
    transport.onclose = () => { sessions.delete(transport.sessionId); };
    await build().connect(transport);
  }
  await transport.handleRequest(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');
