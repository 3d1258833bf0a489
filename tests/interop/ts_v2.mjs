// The official TypeScript SDK, version 2, in each way it can connect: pinned to the modern
// revision, asking first (on a second, short-lived server process), and with the old handshake.
// With the argument `docker`: what there is with containers; with `ssh`: once, over ssh.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { inContainers } from './docker.mjs';
import { scenario } from './scenario.mjs';
import { throughSsh } from './ssh.mjs';
import { finish } from './support.mjs';

const connect = (mode, era) => async (parameters) => {
  const client = new Client(
    { name: 'interop', version: '1' },
    { versionNegotiation: { mode, probe: { timeoutMs: 10_000 } } },
  );
  await client.connect(new StdioClientTransport(parameters));
  if (client.getProtocolEra() !== era) throw new Error(`era ${client.getProtocolEra()}`);
  return {
    version: client.getNegotiatedProtocolVersion(),
    info: client.getServerVersion(),
    tools: async () => (await client.listTools()).tools,
    call: (tool, args, options) => client.callTool({ name: tool, arguments: args }, options),
    close: () => client.close(),
  };
};

const modern = '2026-07-28';
if (process.argv[2] === 'docker') {
  await inContainers('TypeScript SDK 2, docker', modern, connect('auto', 'modern'));
} else if (process.argv[2] === 'ssh') {
  await throughSsh('TypeScript SDK 2, ssh', modern, connect('auto', 'modern'));
} else {
  await scenario('TypeScript SDK 2, pinned', modern, connect({ pin: modern }, 'modern'));
  await scenario('TypeScript SDK 2, auto', modern, connect('auto', 'modern'));
  await scenario('TypeScript SDK 2, legacy', '2025-11-25', connect('legacy', 'legacy'));
}
finish();
