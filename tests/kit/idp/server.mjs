// An authorization server on the npm package oidc-provider: server.mjs PORT ISSUED
// Issuer http://127.0.0.1:PORT. Clients register themselves, PKCE is required, and access tokens are JWTs for the resource that was
// asked for (RFC 8707), whatever it is. No human: alice logs in and grants exactly the scopes that were asked for.
// SIGHUP replaces all keys and the algorithm of access tokens, RS256 first, then ES256; clients, grants and sessions stay.
// Every authorization code and token that it issues is a line of the file ISSUED, so that logs can be searched for them.
import { appendFileSync } from 'node:fs'; import { createServer } from 'node:http'; import { generateKeyPairSync, randomUUID } from 'node:crypto'; import { pathToFileURL } from 'node:url';
const imp = async (file) => (await import(pathToFileURL(`${process.env.KIT_NODE_MODULES}/oidc-provider/lib/${file}`).href)).default;
const Provider = await imp('index.js');
const Memory = await imp('adapters/memory_adapter.js');   // its own instances share one store
const [port, issued] = [Number(process.argv[2]), process.argv[3]];

const key = (type, options, alg) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: randomUUID() });
const cookieKey = randomUUID();

function build(alg) {
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    adapter: (model) => new Memory(model),
    jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ES256')] },
    cookies: { keys: [cookieKey] },
    pkce: { required: () => true },
    clientDefaults: { token_endpoint_auth_method: 'none' },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // A client is not held to the scopes that it registers with, so that it may ask for more later.
    extraClientMetadata: { properties: ['kit'], validator: (ctx, name, value, metadata) => { delete metadata.scope; } },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx, resource) => ({
          scope: 'mcp:read mcp:write mcp:destructive', audience: resource, accessTokenTTL: 3600, accessTokenFormat: 'jwt', jwt: { sign: { alg } },
        }),
      },
    },
  });
  const note = (...texts) => { for (const text of texts) if (text) appendFileSync(issued, `${text}\n`); };
  provider.on('authorization.success', (ctx, answer) => note(answer.code));
  provider.on('grant.success', (ctx) => note(ctx.body.access_token, ctx.body.refresh_token));
  provider.on('server_error', (ctx, error) => console.error(error));
  for (const name of ['authorization.error', 'grant.error', 'registration_create.error']) provider.on(name, (ctx, error) => console.error(`${name}: ${error.error_description ?? error.message}`));
  const oauth = provider.callback();
  return async (request, response) => {
    try {
      if (!request.url.startsWith('/interaction/')) return await oauth(request, response);
      const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
      if (prompt.name === 'login') return await provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
      const grant = (grantId && await provider.Grant.find(grantId)) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
      if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
      for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(' '));
      return await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
    } catch (error) { console.error(error); response.writeHead(500).end(); }
  };
}

let serve = build('RS256');
process.on('SIGHUP', () => { serve = build('ES256'); });
createServer((request, response) => serve(request, response)).listen(port, '127.0.0.1');
