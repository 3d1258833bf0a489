// The official TypeScript SDK, version 1: protocol revisions up to 2025-11-25.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { scenario } from './scenario.mjs';
import { finish } from './support.mjs';

await scenario('TypeScript SDK 1', '2025-11-25', async (parameters) => {
  const client = new Client({ name: 'interop', version: '1' });
  const transport = new StdioClientTransport(parameters);
  let version;
  transport.setProtocolVersion = (negotiated) => {
    version = negotiated;
  };
  await client.connect(transport);
  await client.ping();
  return {
    version,
    info: client.getServerVersion(),
    tools: async () => (await client.listTools()).tools,
    call: (tool, args, options) =>
      client.callTool({ name: tool, arguments: args }, undefined, options),
    tasks: client.experimental.tasks,
    close: () => client.close(),
  };
});
finish();
