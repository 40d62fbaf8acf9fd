// The TypeScript clients with their OAuthClientProvider: oauth_ts.mjs sdk1|client2 URL legacy|modern   knows nothing but the URL.
// Both SDKs leave the end of an authorization to the program: they send the user to the authorization server and throw UnauthorizedError;
// the program takes the code from the callback, calls finishAuth and repeats what it did.
import { createRequire } from 'node:module'; import { randomUUID } from 'node:crypto'; import { pathToFileURL } from 'node:url';
const [sdk, url, mode] = process.argv.slice(2);
const req = createRequire(process.env.KIT_NODE_MODULES + '/x.js'); const imp = (p) => import(pathToFileURL(p).href);
const v2 = sdk === 'client2' ? await imp(process.env.KIT_NODE_MODULES + '/@modelcontextprotocol/client/dist/index.mjs') : undefined;
const { Client } = v2 ?? await imp(req.resolve('@modelcontextprotocol/sdk/client/index.js'));
const { StreamableHTTPClientTransport } = v2 ?? await imp(req.resolve('@modelcontextprotocol/sdk/client/streamableHttp.js'));
const { UnauthorizedError } = v2 ?? await imp(req.resolve('@modelcontextprotocol/sdk/client/auth.js'));

const CALLBACK = 'http://127.0.0.1:9/callback';   // nobody listens; the browser stops before it
const d = { protocol: null, before: null, called: null, kept: null, after: null, step: null, asked: [], granted: [], errors: [] };

// A browser without a human: follows the authorization with plain HTTP and cookies, returns the parameters that the callback would get.
const cookies = new Map();   // name and path -> value
async function browse(at) {
  for (let i = 0; i < 20; i++) {
    const cookie = [...cookies].filter(([k, v]) => v && at.pathname.startsWith(k.split(' ')[1])).map(([k, v]) => `${k.split(' ')[0]}=${v}`).join('; ');
    const answer = await fetch(at, { redirect: 'manual', headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(`${name} ${/; *path=([^;]*)/i.exec(line)?.[1] ?? '/'}`, value);
    }
    const to = answer.headers.get('location');
    if (!to) throw new Error(`authorization ended with HTTP ${answer.status} at ${at}: ${(await answer.text()).slice(0, 200)}`);
    at = new URL(to, at);
    if (at.href.startsWith(CALLBACK)) return at.searchParams;
  }
  throw new Error('too many redirects');
}

// Holds no credential at first.
let client, tokens, verifier, state, discovery, back;
const provider = {
  redirectUrl: CALLBACK,
  clientMetadata: { client_name: `kit ${sdk}`, redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  state: () => (state = randomUUID()),
  clientInformation: () => client, saveClientInformation: (x) => { client = x; },
  tokens: () => tokens, saveTokens: (x) => { tokens = x; },
  codeVerifier: () => verifier, saveCodeVerifier: (x) => { verifier = x; },
  discoveryState: () => discovery, saveDiscoveryState: (x) => { discovery = x; },
  redirectToAuthorization: async (to) => {
    const q = to.searchParams;
    d.asked.push({ issuer: to.origin, scope: q.get('scope'), resource: q.get('resource'), pkce: q.get('code_challenge_method') });
    back = await browse(to);
  },
};
async function finish(transport, error) {   // ends the authorization that the SDK began
  const got = back; back = undefined;
  if (!(error instanceof UnauthorizedError) || !got) throw error;
  if (got.get('state') !== state) throw new Error('the state is not ours');
  await transport.finishAuth(v2 ? got : got.get('code'));
}

try {
  const c = new Client({ name: `kit-${sdk}`, version: '1' }, v2 ? { versionNegotiation: { mode: mode === 'modern' ? { pin: '2026-07-28' } : mode } } : {});
  const connection = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const names = async (cacheMode) => (await c.listTools(undefined, { cacheMode })).tools.map((t) => t.name);   // client 2 has a cache
  const add = () => c.callTool({ name: 'notes__add', arguments: { text: 'kept by a test' } });
  let t = connection();
  try { await c.connect(t); } catch (e) { await finish(t, e); t = connection(); await c.connect(t); }
  d.protocol = v2 ? c.getNegotiatedProtocolVersion() : t.protocolVersion ?? t._protocolVersion;
  d.before = await names(); d.granted.push(tokens.scope);
  let r;
  try { r = await add(); d.step = 'no step-up was needed'; } catch (e) { await finish(t, e); r = await add(); d.step = 'the SDK asks for the scopes, the program repeats the call'; }
  d.called = { isError: r.isError ?? false, content: r.content.length };
  d.kept = await names(); d.after = await names('refresh'); d.granted.push(tokens.scope);
  await c.close();
} catch (e) { d.errors.push(`${e.name}: ${e.message}`.slice(0, 300)); }
process.stdout.write(JSON.stringify(d) + '\n', () => process.exit(d.errors.length ? 1 : 0));
