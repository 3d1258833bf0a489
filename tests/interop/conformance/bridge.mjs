// A transparent bridge: Streamable HTTP on one side, an MCP server on standard streams on the
// other. Every message passes as the very line that was written; nothing is interpreted beyond the
// ids and tokens that say which HTTP response a line belongs to. (Bridges that speak the protocol
// themselves hide the faults of the server behind them.)
//
//   node bridge.mjs PORT COMMAND [ARGUMENT...]        then POST to http://127.0.0.1:PORT/mcp
//
// A legacy `initialize` starts a server process of its own, named by Mcp-Session-Id; everything
// without a session goes to one shared process.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';

const [port, command, ...commandArguments] = process.argv.slice(2);

const subscriptionId = 'io.modelcontextprotocol/subscriptionId';

class Server {
  constructor() {
    this.waiting = new Map(); // id as JSON -> { token, deliver }
    this.child = spawn(command, commandArguments, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.child.on('exit', (code, signal) => {
      console.error(`bridge: the server ended (${code ?? signal})`);
      for (const request of this.waiting.values()) request.deliver(null, true);
      this.waiting.clear();
    });
    this.child.stdin.on('error', () => {});
    let pending = '';
    this.child.stdout.setEncoding('utf8');
    this.child.stdout.on('data', (text) => {
      const lines = (pending + text).split('\n');
      pending = lines.pop();
      for (const line of lines) this.receive(line);
    });
  }

  send(line) { this.child.stdin.write(line + '\n'); }

  receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      console.error(`bridge: not a message: ${line}`);
      return;
    }
    if (message.method === undefined) {
      const first = [...this.waiting.keys()][0];
      const key = message.id === undefined ? first : JSON.stringify(message.id);
      const request = this.waiting.get(key);
      if (!request) return console.error(`bridge: nobody waits for: ${line}`);
      this.waiting.delete(key);
      request.deliver(line, true, message);
      return;
    }
    const token = message.params?.progressToken;
    const subscription = message.params?._meta?.[subscriptionId];
    for (const [key, request] of this.waiting) {
      const mine = (token !== undefined && request.token === token) ||
        (subscription !== undefined && key === JSON.stringify(subscription));
      if (mine) return request.deliver(line, false, message);
    }
    // The server's own requests and log messages name no request; a session has one at a time.
    const any = [...this.waiting.values()][0];
    if (any && (message.id !== undefined || message.method === 'notifications/message'))
      return any.deliver(line, false, message);
    console.error(`bridge: belongs to no request: ${line}`);
  }
}

let shared;
const sessions = new Map();

// HTTP statuses that the transport prescribes for errors (2026-07-28, Streamable HTTP).
function statusOf(message, modern) {
  const code = message?.error?.code;
  if (!modern || code === undefined) return 200;
  if (code === -32601) return 404;
  return [-32700, -32600, -32602, -32020, -32021, -32022].includes(code) ? 400 : 200;
}

// The one duty of the HTTP transport that no server behind it can have (2026-07-28).
function headerMismatch(request, message) {
  const inBody = message?.params?._meta?.['io.modelcontextprotocol/protocolVersion'];
  const inHeader = request.headers['mcp-protocol-version'];
  return typeof inBody === 'string' && inHeader !== undefined && inHeader !== inBody;
}

function forward(server, body, message, response, headers) {
  const key = JSON.stringify(message.id);
  const meta = message.params?._meta;
  const modern = meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined ||
    ['server/discover', 'subscriptions/listen'].includes(message.method);
  let streaming = false;
  const deliver = (line, last, reply) => {
    if (line === null) return response.writableEnded || response.writeHead(502).end();
    if (last && !streaming) {
      const type = { 'Content-Type': 'application/json' };
      response.writeHead(statusOf(reply, modern), { ...type, ...headers });
      return response.end(line);
    }
    if (!streaming) response.writeHead(200, { 'Content-Type': 'text/event-stream', ...headers });
    streaming = true;
    response.write(`event: message\ndata: ${line}\n\n`);
    if (last) response.end();
  };
  server.waiting.set(key, { token: meta?.progressToken, deliver });
  // A client that hangs up has cancelled; standard streams say so with a notification.
  response.on('close', () => {
    if (response.writableFinished || !server.waiting.delete(key)) return;
    server.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled',
      params: { requestId: message.id } }));
  });
  server.send(body);
}

function post(request, response, body) {
  const line = body.replace(/\r?\n/g, ' ');
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    message = undefined;
  }
  if (headerMismatch(request, message)) {
    response.writeHead(400, { 'Content-Type': 'application/json' });
    const error = { code: -32020, message: 'MCP-Protocol-Version does not match the message' };
    return response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
  }
  const session = request.headers['mcp-session-id'];
  let server = session ? sessions.get(session) : shared ??= new Server();
  const headers = {};
  if (session && !server) return response.writeHead(404).end();
  if (message?.method === 'initialize' && !message.params?._meta) {
    server = new Server();
    headers['Mcp-Session-Id'] = randomUUID();
    sessions.set(headers['Mcp-Session-Id'], server);
  }
  const hasId = message?.id !== undefined && message.id !== null;
  const isRequest = message?.method !== undefined && hasId;
  const isNotification = message && !Array.isArray(message) && message.id === undefined;
  if (isRequest) {
    const key = JSON.stringify(message.id);
    const before = server.waiting.get(key);
    if (!before) return forward(server, line, message, response, headers);
    // Another client uses the same id at the moment: its turn first.
    const { deliver } = before;
    before.deliver = (text, last, reply) => {
      deliver(text, last, reply);
      if (last) setImmediate(() => post(request, response, body));
    };
    return;
  }
  if (isNotification || message?.result || message?.error) {
    server.send(line);
    return response.writeHead(202).end();
  }
  // Malformed: the next error without an id is the answer.
  forward(server, line, message ?? {}, response, headers);
}

http.createServer((request, response) => {
  const host = (request.headers.host ?? '').replace(/:\d+$/, '');
  const origin = request.headers.origin;
  const local = ['localhost', '127.0.0.1', '[::1]'];
  if (!local.includes(host) || (origin && !local.includes(new URL(origin).hostname)))
    return response.writeHead(403).end();
  if (request.method === 'DELETE') {
    const server = sessions.get(request.headers['mcp-session-id']);
    sessions.delete(request.headers['mcp-session-id']);
    server?.child.stdin.end();
    return response.writeHead(200).end();
  }
  if (request.method !== 'POST') return response.writeHead(405, { Allow: 'POST, DELETE' }).end();
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => post(request, response, Buffer.concat(chunks).toString('utf8')));
}).listen(Number(port), '127.0.0.1', () => console.error(`bridge: listening on ${port}`));
