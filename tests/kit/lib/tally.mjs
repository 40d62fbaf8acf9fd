// node tally.mjs OUTDIR [EXPECTED_FILE] [--json FILE]
// Reads the checks.json files that the conformance suite wrote, prints the counts of each scenario and a total, and
// compares the failing scenarios with the expected-failures file. A warning is a SHOULD: shown, never a failure.
// Exit 0: no unexpected failure and no stale entry; 1: one of them; 2: nothing ran, or the expected file is unusable.
import fs from 'node:fs'; import path from 'node:path';

const args = process.argv.slice(2); const at = args.indexOf('--json');
const jsonOut = at >= 0 ? args.splice(at, 2)[1] : null;
const [out, expFile] = args;
const subset = (process.env.KIT_SCENARIOS || '').trim() !== '';
const lines = (file) => fs.readFileSync(file, 'utf8').split('\n').map((l) => l.trim()).filter((l) => l && !l.startsWith('#'));

// One entry a line: `scenario  # reason` or `scenario:check-id  # reason`.
const expected = new Map();
for (const l of expFile ? lines(expFile) : []) {
  const m = /^(\S+)\s+#\s*(\S.*)$/.exec(l);
  if (!m) { console.error(`${expFile}: no reason given: ${l}`); process.exit(2); }
  expected.set(m[1], { reason: m[2], used: false });
}

const rows = [];
const row = (n, c = {}, why = []) => { const r = { n, c: { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0, ...c }, why }; rows.push(r); return r; };
const fail = (r, id, text) => { r.c.FAILURE++; r.why.push({ status: 'FAILURE', id, text }); };
(function walk(dir) {
  for (const e of fs.readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const f = path.join(dir, e.name);
    if (e.isDirectory()) walk(f);
    else if (e.name === 'checks.json') {
      const r = row(path.relative(out, dir).replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '').replace(/^server-/, ''));
      for (const k of JSON.parse(fs.readFileSync(f, 'utf8'))) {
        r.c[k.status] = (r.c[k.status] || 0) + 1;
        if (k.status === 'FAILURE' || k.status === 'WARNING') r.why.push({ status: k.status, id: k.id, text: (k.errorMessage || '').slice(0, 240) });
      }
    }
  }
})(out);

// A scenario that was announced but has no result (a crash, a timeout) fails.
const log = path.join(out, 'run.log');
if (fs.existsSync(log)) for (const m of fs.readFileSync(log, 'utf8').matchAll(/^(?:=== Running scenario: (\S+) ===|Starting scenario: (\S+))/gm)) {
  const n = m[1] || m[2];
  if (!rows.some((r) => r.n === n)) fail(row(n), 'no-result', 'the suite wrote no result for this scenario, see run.log');
}
const ran = rows.length;

// KIT_CEILING: what the upstream alone reaches. Fewer passes fail: a capability that is not announced turns checks into
// SKIPPED, which the suite itself calls green; so does a scenario that did not run.
if (process.env.KIT_CEILING) for (const l of lines(process.env.KIT_CEILING)) {
  const [n, want] = l.split(/\s+/); const r = rows.find((x) => x.n === n);
  if (!r) { if (!subset) fail(row(n), 'not-run', 'the suite did not run this scenario'); }
  else if (r.c.FAILURE === 0 && r.c.SUCCESS < Number(want)) fail(r, 'below-ceiling', `${r.c.SUCCESS} of ${want} checks passed`);
}

const total = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0 }; const passing = [], failing = [], tolerated = [];
for (const { n, c, why } of rows) {
  for (const k of Object.keys(total)) total[k] += c[k];
  const ids = why.filter((w) => w.status === 'FAILURE').map((w) => `${n}:${w.id}`);
  const covered = expected.has(n) || (ids.length > 0 && ids.every((i) => expected.has(i)));
  if (c.FAILURE > 0) for (const k of [n, ...ids]) if (expected.has(k)) expected.get(k).used = true;
  (c.FAILURE === 0 ? passing : covered ? tolerated : failing).push(n);
  const mark = c.FAILURE > 0 ? (covered ? 'known' : 'FAIL') : c.WARNING ? 'warn' : 'ok';
  console.log(`${mark.padEnd(5)} ${n}: ${c.SUCCESS} passed, ${c.FAILURE} failed, ${c.WARNING} warned${c.SKIPPED ? `, ${c.SKIPPED} skipped` : ''}`);
  for (const w of why) console.log(`        ${w.status} ${w.id}: ${w.text}`);
}
const stale = [...expected].filter(([k, e]) => !e.used && (!subset || rows.some((r) => r.n === k.split(':')[0]))).map(([k]) => k);

console.log(`\nscenarios ${rows.length}  checks: ${total.SUCCESS} passed, ${total.FAILURE} failed, ${total.WARNING} warned, ${total.SKIPPED} skipped`);
if (tolerated.length) console.log(`expected failures: ${tolerated.join(' ')}`);
if (failing.length) console.log(`UNEXPECTED failures: ${failing.join(' ')}`);
if (stale.length) console.log(`STALE entries (they pass or do not exist, remove them): ${stale.join(' ')}`);
if (jsonOut) fs.writeFileSync(jsonOut, JSON.stringify({ ran, total, passing, failing, tolerated, stale, rows }, null, 1));
process.exit(ran === 0 ? 2 : failing.length || stale.length ? 1 : 0);
