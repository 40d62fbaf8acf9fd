// @modelcontextprotocol/server 2.x upstream: 2026-07-28 only, everything else is refused. ts2_server.mjs PORT
// Both tools end the first round with a question and answer the second with what the client said.
import { createServer } from 'node:http'; import { pathToFileURL } from 'node:url';
const imp = (p) => import(pathToFileURL(`${process.env.KIT_NODE_MODULES}/@modelcontextprotocol/${p}/dist/index.mjs`).href);
const { McpServer, createMcpHandler, inputRequired, inputResponse } = await imp('server');
const { toNodeHandler } = await imp('node');

const text = (s) => ({ content: [{ type: 'text', text: s }] });
function build() {
  const mcp = new McpServer({ name: 'ts2', version: '1' });
  mcp.registerTool('ask_form', { description: 'Asks the user for a name' }, async (ctx) => {
    const a = inputResponse(ctx.mcpReq.inputResponses, 'user');
    if (a.kind === 'elicit') return text(`${a.action}: ${JSON.stringify(a.content)}`);
    return inputRequired({ inputRequests: { user: inputRequired.elicit({ message: 'your name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } }) } });
  });
  mcp.registerTool('ask_model', { description: "Asks the client's model" }, async (ctx) => {
    const a = inputResponse(ctx.mcpReq.inputResponses, 'model');
    if (a.kind === 'sampling') return text(`${a.result.model}: ${a.result.content.text}`);
    return inputRequired({ inputRequests: { model: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'say something' } }], maxTokens: 100 }) } });
  });
  return mcp;
}

const serve = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
createServer((request, response) => {
  if (request.url === '/mcp') serve(request, response); else response.writeHead(404).end();
}).listen(Number(process.argv[2]), '127.0.0.1');
