export function args() {
  const v = process.argv.slice(2); const o = { url: v[0], mode: 'auto', wait: 0 };
  for (let i = 1; i < v.length; i++) { const k = v[i].replace(/^--/, ''); if (k === 'sse') o.sse = true; else if (k === 'tool' || k === 'args') (o[k] ??= []).push(v[++i]); else o[k] = v[++i]; }
  o.wait = Number(o.wait); return o;
}
export function pick(tools, want) {
  const dflt = (s) => Object.fromEntries((s.required || []).map((k) => { const p = (s.properties || {})[k] || {}; return [k, p.enum ? p.enum[0] : { string: 'hi', number: 2, integer: 2, boolean: true, array: [], object: {} }[p.type] ?? 'hi']; }));
  const t = want ? tools.find((x) => x.name === want) || tools.find((x) => x.name.endsWith(want))
    : ['echo', 'get-sum', 'add', 'test_simple_text'].map((s) => tools.find((x) => x.name.endsWith(s))).find(Boolean) || tools.find((x) => !(x.inputSchema.required || []).length) || tools[0];
  if (!t) throw new Error(`no tool ${want}`);
  return [t.name, dflt(t.inputSchema)];
}
export async function drive(name, o, c, out, caps, seen) {
  const d = out; const err = (w, e) => d.errors.push(`${w}: ${e.name}: ${e.message}`.slice(0, 300));
  let tools = [];
  try { let cursor; do { const p = await c.listTools(cursor ? { cursor } : undefined); d.pages++; tools = tools.concat(p.tools); cursor = p.nextCursor; } while (cursor); d.tools = tools.length; d.names = tools.map((t) => t.name); } catch (e) { err('tools/list', e); }
  // The nth --args belongs to the nth --tool; the trigger comes last and is not reported.
  const calls = (o.tool || [undefined]).map((want, i) => [want, o.args?.[i], false]); if (o.trigger) calls.push([o.trigger, undefined, true]);
  for (const [want, given, trigger] of calls) {
    try { let [n, a] = pick(tools, want); if (given) a = JSON.parse(given); const r = await c.callTool({ name: n, arguments: a }); if (!trigger) d.called.push({ name: n, isError: r.isError ?? false, text: (r.content.find((x) => x.text) || {}).text?.slice(0, 80) ?? `${r.content.length} items` }); } catch (e) { err('tools/call', e); }
  }
  if (caps?.resources) try { const r = (await c.listResources()).resources; d.resources = r.length; d.templates = (await c.listResourceTemplates()).resourceTemplates.length; if (r.length) { const x = await c.readResource({ uri: r[0].uri }); d.read = { uri: r[0].uri, contents: x.contents.length }; } } catch (e) { err('resources', e); }
  if (caps?.prompts) try { const p = (await c.listPrompts()).prompts; d.prompts = p.length; const q = p.find((x) => !(x.arguments || []).some((a) => a.required)); if (q) d.got = { name: q.name, messages: (await c.getPrompt({ name: q.name })).messages.length }; } catch (e) { err('prompts', e); }
  await new Promise((r) => setTimeout(r, o.wait * 1000));
}
export const blank = (client) => ({ client, protocol: null, server: null, tools: 0, names: [], pages: 0, called: [], resources: 0, templates: 0, read: null, prompts: 0, got: null, list_changed: [], errors: [] });
export function done(d, t0) { d.seconds = (Date.now() - t0) / 1000; process.stdout.write(JSON.stringify(d) + '\n', () => process.exit(d.errors.length ? 1 : 0)); }
