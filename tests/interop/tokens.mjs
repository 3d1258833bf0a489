// How many tokens of a model's context the server takes before anything is asked: its instructions
// and the whole answer to tools/list, as o200k counts them.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const most = 2000;
const revisions = ['2025-03-26', '2025-06-18', '2025-11-25'];
const tokens = (value) => encode(typeof value === 'string' ? value : JSON.stringify(value)).length;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'codeexec-tokens-'));

function count(revision, options) {
  const client = {
    protocolVersion: revision,
    capabilities: {},
    clientInfo: { name: 'tokens', version: '1' },
  };
  const messages = [
    { jsonrpc: '2.0', id: 1, method: 'initialize', params: client },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method: 'tools/list' },
  ];
  const input = messages.map((message) => `${JSON.stringify(message)}\n`).join('');
  const server = spawnSync(process.env.CODEEXEC_MCP, options, { cwd: folder, input });
  const lines = String(server.stdout).trim().split('\n');
  const [greeting, listing] = lines.map((line) => JSON.parse(line));
  const { instructions } = greeting.result;
  const { tools } = listing.result;
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
fs.rmSync(folder, { recursive: true });
