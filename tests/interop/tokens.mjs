// How many tokens of a model's context the server takes, as o200k counts them: before anything is
// asked its instructions and the whole answer to tools/list; then what the text of a result takes
// more than the plain output.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const most = 2200;
const revisions = ['2025-03-26', '2025-06-18', '2025-11-25'];
const tokens = (value) => encode(typeof value === 'string' ? value : JSON.stringify(value)).length;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'codeexec-tokens-'));

// The results of a greeting and of one request.
function asked(revision, options, method, params) {
  const client = {
    protocolVersion: revision,
    capabilities: {},
    clientInfo: { name: 'tokens', version: '1' },
  };
  const messages = [
    { jsonrpc: '2.0', id: 1, method: 'initialize', params: client },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method, params },
  ];
  const input = messages.map((message) => `${JSON.stringify(message)}\n`).join('');
  const server = spawnSync(process.env.CODEEXEC_MCP, options, { cwd: folder, input });
  const lines = String(server.stdout).trim().split('\n');
  return lines.map((line) => JSON.parse(line).result);
}

function count(revision, options) {
  const [{ instructions }, { tools }] = asked(revision, options, 'tools/list');
  const seen = tools.map(({ name, description, inputSchema }) =>
    ({ name, description, inputSchema }));
  return { all: tokens(instructions) + tokens(tools), seen: tokens(instructions) + tokens(seen) };
}

for (const options of [[], ['--allowed-paths', folder]]) {
  for (const revision of revisions) {
    const { all, seen } = count(revision, options);
    const whose = `${options[0] ?? 'no option'}, ${revision}`;
    const what = `tokens: ${whose}: ${all}, of which models see ${seen}`;
    console.log(all <= most ? `ok: ${what}` : `FAILED: ${what}; ${most} may be`);
    if (all > most) process.exitCode = 1;
  }
}

// Output of several kinds, of some 5 to 15 kB.
const repeat = (times, line) => `for i in $(seq 1 ${times}); do ${line}; done`;
const outputs = {
  'lines of a log': repeat(120, 'echo "2026-12-01 10:00:$i [info] \\"job $i\\": done"'),
  'C code': repeat(60, 'printf "int f%s(char *s) {\\n\\treturn s[0] == 0;\\n}\\n" $i'),
  'JSON': repeat(100, 'echo "{\\"id\\": $i, \\"path\\": \\"C:\\\\\\\\data\\"}"'),
  'a table': 'ls -la /usr/bin | head -n 120',
};
for (const [kind, command] of Object.entries(outputs)) {
  const call = { name: 'execute_command', arguments: { command } };
  const options = ['--allowed-paths', folder];
  const [, result] = asked(revisions[2], options, 'tools/call', call);
  const { content, structuredContent: object } = result;
  const plain = tokens(object.stdout);
  const shown = tokens(content[0].text);
  const what = `tokens: result: ${kind}: ${shown} for ${plain}; as JSON ${tokens(object)}`;
  const good = object.success && plain > 1000 && shown <= 1.05 * plain;
  console.log(good ? `ok: ${what}` : `FAILED: ${what}; ${Math.floor(1.05 * plain)} may be`);
  if (!good) process.exitCode = 1;
}
fs.rmSync(folder, { recursive: true });
