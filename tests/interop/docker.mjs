// Commands in containers: the conversation of scenario.mjs there, and what only containers have.
// $DOCKER_HOST is an engine on this machine with the images of tests/helpers/engine.sh.
import { execFile, execFileSync, spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { scenario } from './scenario.mjs';
import { alive, ask, check, count, mentions, refusal, server, servers, steps, unique,
  until } from './support.mjs';
import { names } from './tools.mjs';

const inContainer = ['--execution-mode', 'docker'];
const env = { DOCKER_HOST: process.env.DOCKER_HOST };

// the engine --------------------------------------------------------------------------------------

const run = promisify(execFile);
const docker = async (...words) => (await run('docker', words, { timeout: 30_000 })).stdout;
const inspect = async (container) => JSON.parse(await docker('container', 'inspect', container))[0];
const exists = async (container) =>
  (await docker('ps', '-a', '--format', '{{.Names}}')).split('\n').includes(container);

// Waits until the engine has removed it, or had done so before.
function removed(container, seconds = 20) {
  return new Promise((resolve, reject) => {
    const events = spawn('docker', ['events', '--since', '10m', '--filter', 'event=destroy',
      '--filter', `container=${container}`, '--format', '{{.Action}}']);
    const ends = (settle) => { clearTimeout(limit); events.kill(); settle(); };
    const limit = setTimeout(
      () => ends(() => reject(new Error(`${container} is there after ${seconds} s`))),
      seconds * 1000);
    events.stdout.once('data', () => ends(resolve));
  });
}

// The engine's program, in a directory of its own, with the arguments of all of its calls in a
// file.
function recordingDocker(directory) {
  const [program, record] = [path.join(directory, 'docker'), path.join(directory, 'calls')];
  const real = execFileSync('sh', ['-c', 'command -v docker'], { encoding: 'utf8' }).trim();
  fs.writeFileSync(program,
    `#!/bin/sh\nprintf '%s\\n' "$@" >> '${record}'\nexec '${real}' "$@"\n`, { mode: 0o755 });
  return { program, calls: () => fs.readFileSync(record, 'utf8') };
}

// servers -----------------------------------------------------------------------------------------

const temporary = () =>
  fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'codeexec-interop-')));

// A server with a container, and a workspace of its own.
async function agent(connect, options, variables = {}) {
  const workspace = temporary();
  const client = await connect({
    command: server,
    args: [...inContainer, '--workspace', workspace, ...options],
    cwd: workspace,
    env: { ...env, ...variables },
    stderr: 'inherit',
  });
  return {
    client,
    workspace,
    ask: (tool, args) => ask(client, tool, args),
    refusal: (tool, args) => refusal(client, tool, args),
    execute: (command, more = {}) => ask(client, 'execute_command', { command, ...more }),
    async close() {
      await client.close();
      fs.rmSync(workspace, { recursive: true, force: true });
    },
  };
}

// Gives `use` an agent for each of the lists of options, and closes them again.
async function withAgents(connect, lists, use, variables = {}) {
  const agents = [];
  try {
    for (const options of lists) agents.push(await agent(connect, options, variables));
    await use(...agents);
  } finally {
    await Promise.all(agents.map((each) => each.close()));
  }
}

// The conversation of scenario.mjs has no network: what pip installs lies in a directory.
function place() {
  let container;
  const wheels = process.env.INTEROP_WHEELS;
  return {
    options: [...inContainer, '--read-only', wheels],
    env,
    async installs(execute, project) {
      const installed = await execute('pip --python .venv/bin/python install --quiet --no-compile '
        + `--no-index --find-links '${wheels}' -r '${wheels}/requirements.txt'`);
      check(installed.success, 'pip', installed);
      check(fs.readdirSync(project).join() === '.venv', 'on this side, too', project);
      container = installed.container;
    },
    async closed() {
      await removed(container);
      check(!(await exists(container)), 'the container is gone', container);
    },
  };
}

// the steps ---------------------------------------------------------------------------------------

const connection = `python3 -c 'import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as one:
        print(one.makefile().readline())
except OSError as error:
    print("cannot:", error)' `;

// The address of this machine on the network of a container.
async function addressFrom({ execute }) {
  const route = await execute(`awk '$2 == "00000000" { print $3 }' /proc/net/route`);
  check(/^[0-9A-F]{8}\n$/.test(route.stdout), 'a way out', route);
  return route.stdout.trim().match(/../g).reverse().map((byte) => parseInt(byte, 16)).join('.');
}

async function twoAgents(first, second) {
  const [one, two] = await Promise.all([first, second].map(({ execute }) =>
    execute('echo "$$" > /tmp/mine; echo "$HOME" > mine; hostname; [ -e /.dockerenv ]')));
  check(one.success && two.success, 'both run in containers', [one, two]);
  check(one.container !== two.container && one.stdout !== two.stdout, 'in two', [one, two]);
  check(one.stdout.trim() !== os.hostname(), 'not here', one);
  // Each of the two waits for the other one to begin.
  const marks = [first, second].map(({ workspace }) => path.join(workspace, 'begun'));
  const both = [first, second].map(({ execute }) =>
    execute('touch begun; until [ -e go ]; do sleep 0.05; done', { timeout: 30 }));
  await until('both run at the same time', () => marks.every((mark) => fs.existsSync(mark)));
  for (const { workspace } of [first, second]) fs.writeFileSync(path.join(workspace, 'go'), '');
  check((await Promise.all(both)).every(({ success }) => success), 'both end', both);
  await first.execute('echo secret > /tmp/other; echo secret > other');
  const looked = await second.execute(`cat /tmp/other ${first.workspace}/other`);
  check(!looked.success && looked.stdout === '', 'nothing of the other', looked);
  const file_path = path.join(first.workspace, 'other');
  check((await first.ask('read_file', { file_path })).content === 'secret\n', 'the own', file_path);
  check((await second.refusal('read_file', { file_path })).includes(file_path), 'not read');
}

async function networks(none, bridge) {
  const listener = net.createServer((socket) => socket.end('from this machine\n'));
  await new Promise((resolve) => { listener.listen(0, '0.0.0.0', resolve); });
  try {
    const address = `${await addressFrom(bridge)} ${listener.address().port}`;
    const reached = await bridge.execute(connection + address);
    check(reached.stdout === 'from this machine\n\n', 'bridge reaches it', reached);
    const cut = await none.execute(connection + address);
    check(/^cannot: .*unreachable/.test(cut.stdout), 'none does not', cut);
    const interfaces = await none.execute('ls /sys/class/net');
    check(interfaces.stdout === 'lo\n', 'no more than loopback', interfaces);
  } finally {
    await new Promise((resolve) => { listener.close(resolve); });
  }
}

async function packages({ execute }) {
  const imported = await execute('python3 -c "import colorama; print(colorama.__version__)"');
  check(/^0\.4\.[6-9]\n$/.test(imported.stdout), 'it is there', imported);
  const { notes } = imported;
  check(notes === undefined, 'all went well', notes);
}
const wanted = JSON.stringify({ preinstall: { python: ['colorama>=0.4.6,<0.5'] } });

async function credentials(connect) {
  const directory = temporary();
  const file = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    fs.writeFileSync(path.join(directory, name), text, { mode: 0o600 });
    return path.join(directory, name);
  };
  const digest = (text) => crypto.createHash('sha256').update(text).digest('hex');
  const [secret, other] = ['given', 'other'].map((name) => `${name}-${crypto.randomUUID()}`);
  const key = `key-${crypto.randomUUID()}\n`;
  file('.ssh/id_interop', key);
  file('.gitconfig', '[user]\n\tname = Ada of Interop\n');
  const environment = file('.env', `INTEROP_TOKEN="${secret}"\nINTEROP_OTHER=${other}\n`);
  const audit = path.join(directory, 'audit.jsonl');
  const log = path.join(directory, 'container.log');
  const { program, calls } = recordingDocker(directory);
  const given = JSON.stringify({ mount: ['ssh_keys', 'git_config', 'npm_config'],
    env_file: environment, env_vars_from_file: ['INTEROP_TOKEN'] });
  const options = ['--docker-credentials', given, '--docker-program', program, '--audit-file',
    audit, '--docker-log-file', log];
  await withAgents(connect, [options], async ({ execute, ask: call }) => {
    const seen = await execute('printf %s "$INTEROP_TOKEN" | sha256sum; echo "<$INTEROP_OTHER>"');
    check(seen.stdout === `${digest(secret)}  -\n<>\n`, 'what it is given and no more', seen);
    const files = await execute('cd && sha256sum < .ssh/id_interop; git config --global user.name; '
      + 'ls -A; echo x >> .gitconfig');
    check(files.stdout === `${digest(key)}  -\nAda of Interop\n.gitconfig\n.ssh\n`, 'files', files);
    check(/Read-only/.test(files.stderr), 'not to be changed', files);
    const duration = unique();
    const shell = await call('start_background_shell',
      { command: `echo "it is $INTEROP_TOKEN"; printenv INTEROP_TOKEN >&2; sleep ${duration}` });
    await until('it runs', () => alive(duration));
    check(!mentions(secret), 'in no argument of a process', shell);
    const output = await call('get_background_shell_output',
      { shell_id: shell.shell_id, wait_for: 'it is ' });
    const code = await call('execute_code',
      { language: 'python', code: 'import os\nprint("it is", os.environ["INTEROP_TOKEN"])\n' });
    for (const told of [output, code]) {
      check(/^it is /.test(told.stdout) && !JSON.stringify(told).includes(secret), 'masked', told);
    }
    const echo = await execute(`echo ${secret}`);
    check(echo.success && !JSON.stringify(echo).includes(secret), 'masked in the command', echo);
    check(!JSON.stringify(await inspect(seen.container)).includes(secret), 'not with the engine');
  }, { HOME: directory });
  const records = fs.readFileSync(audit, 'utf8');
  check(records.includes('printenv INTEROP_TOKEN') && !records.includes(secret), 'audit', records);
  const events = fs.readFileSync(log, 'utf8');
  check(events.includes('it is ') && !events.includes(secret), 'log', events);
  const arguments_ = calls();
  check(arguments_.includes('exec\n') && ![secret, other].some((value) =>
    arguments_.includes(value)), 'in no argument of a call', arguments_);
  fs.rmSync(directory, { recursive: true, force: true });
}

// Each process forks until it may not; were there no limit, there would be 1024 that do nothing.
const forkBomb = `import os, signal, sys
for generation in range(10):
    try:
        os.fork()
    except BlockingIOError:
        os.write(1, b"no more\\n")
signal.pause()
`;
async function forks({ execute, ask: call, workspace }) {
  const limit = 40;
  await call('write_file', { file_path: 'bomb.py', content: forkBomb });
  const mark = path.join(workspace, 'bomb.py');
  let [ended, most] = [false, 0];
  const bomb = execute(`exec python3 ${mark}`, { timeout: 2 }).finally(() => { ended = true; });
  await until('the bomb has ended', () => {
    most = Math.max(most, count(mark));
    return ended;
  }, 30);
  const forked = await bomb;
  check(forked.timed_out && /^(no more\n)+$/.test(forked.stdout), 'forks fail', forked);
  check(most > limit / 2 && most <= limit, 'as many processes as it may have', most);
  await until('nothing of it runs', () => !alive(mark), 3);
  const after = await execute('echo still here');
  check(after.stdout === 'still here\n' && after.container === forked.container, 'fine', after);
}

async function eats({ execute }) {
  const eaten = await execute('python3 -c "print(len(bytearray(b\\"x\\") * (512 << 20)))"');
  check(!eaten.success && eaten.stdout === '', 'it is killed', eaten);
  check(eaten.limits_reached?.join() === 'memory', 'why', eaten);
  const again = await execute('echo still here');
  check(again.stdout === 'still here\n' && again.container === eaten.container, 'fine', again);
  check(!again.limits_reached, 'the next one is not blamed', again);
}

async function killed({ execute, ask: call, workspace }) {
  const [duration, escaped, background] = [unique(), unique(), unique()];
  const { container } = await execute('true');
  execute(`setsid sleep ${escaped} & sleep ${duration}`).catch(() => undefined);
  await call('start_background_shell', { command: `sleep ${background}` });
  await until('the commands run', () => [duration, escaped, background].every(alive));
  check(mentions(container), 'programs that speak to the engine', container);
  const [pid] = servers().find(([, { words }]) => words.includes(workspace));
  process.kill(pid, 'SIGKILL');
  await removed(container);
  check(![duration, escaped, background].some(alive), 'nothing of it runs', container);
  check(!(await exists(container)), 'the container is gone', container);
  await until('what spoke to the engine is gone', () => !mentions(container));
}

// An engine that is not there, and one that never answers.
async function deadEngines(connect) {
  const directory = temporary();
  const silent = net.createServer(() => {});
  await new Promise((resolve) => { silent.listen(path.join(directory, 'silent.sock'), resolve); });
  try {
    for (const [socket, help] of [['none.sock', /DOCKER_HOST/], ['silent.sock', /stuck/]]) {
      const address = `unix://${path.join(directory, socket)}`;
      const begin = Date.now();
      await withAgents(connect, [['--docker-call-timeout', '2']], async ({ client, ask: call }) => {
        const tools = await client.tools();
        check(tools.map(({ name }) => name).join() === names.join(), 'all tools', tools);
        // Without an engine there is nothing to wait for: the limit is far beyond what it takes.
        check(Date.now() - begin < 1900, `${socket}: connects at once`, Date.now() - begin);
        const command = 'touch was_run';
        const answer = await call('execute_command', { command });
        check(!answer.success && answer.exit_code === -1, 'not run', answer);
        check(/engine/.test(answer.stderr) && help.test(answer.stderr), 'what to do', answer);
        check(!fs.existsSync(path.join(answer.work_dir, 'was_run')), 'nor here', answer);
      }, { DOCKER_HOST: address });
    }
  } finally {
    silent.close();
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

export async function inContainers(name, version, connect) {
  await scenario(name, version, connect, place());
  const step = steps(name);
  const on = (network) => ['--docker-network-mode', network];
  await step('runs two agents at the same time, which share nothing', () =>
    withAgents(connect, [on('none'), on('bridge')], async (none, bridge) => {
      await twoAgents(none, bridge);
      await step('network none reaches nothing, bridge this machine', () => networks(none, bridge));
    }));
  await step('has the packages that were asked for', () => withAgents(connect,
    [[...on('host'), '--docker-packages', wanted, '--docker-packages-required']], packages));
  await step('gives credentials, and shows them to nobody', () => credentials(connect));
  await step('contains a fork bomb', () => withAgents(connect,
    [['--docker-pids-limit', '40', '--docker-memory-limit', '64m']], async (one) => {
      await forks(one);
      await step('contains a memory bomb', () => eats(one));
    }));
  await step('a server killed with SIGKILL leaves nothing', () =>
    withAgents(connect, [[]], killed));
  await step('tells without an engine what to do', () => deadEngines(connect));
  await step('no server is left', () => until('all are gone', () => servers().length === 0));
}
