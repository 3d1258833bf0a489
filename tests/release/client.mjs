// A short talk of the official TypeScript SDK (version 1) with an installed server, like client.py:
//   client.mjs NAME COMMAND [ARGUMENT...]    with $VERSION; beside the packages of tests/interop
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { check, finish, steps, structured } from './support.mjs';
import { names } from './tools.mjs';

const [name, command, ...args] = process.argv.slice(2);
const step = steps(name);
const client = new Client({ name: 'release', version: '1' });
await step('is initialized', async () => {
  await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
  const { version } = client.getServerVersion();
  check(version === process.env.VERSION, 'version', version);
});
await step('lists its tools', async () => {
  const { tools } = await client.listTools();
  check(tools.map((tool) => tool.name).join() === names.join(), 'tools', tools);
});
await step('runs commands', async () => {
  const call = { command: 'echo hello; echo oops >&2; exit 3' };
  const done = structured(await client.callTool({ name: 'execute_command', arguments: call }));
  check(done.stdout === 'hello\n' && done.stderr === 'oops\n', 'output', done);
  check(done.exit_code === 3, 'exit code', done);
});
await client.close();
finish();
