// What every TypeScript client does with the server; the same steps as in python_client.py. A
// client is an object with version, info, tools(), call(tool, arguments, options) and close().
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { alive, check, server, servers, steps, structured, unique, until } from './support.mjs';
import { names, useTools } from './tools.mjs';

const keys = ['success', 'exit_code', 'stdout', 'stderr', 'execution_time', 'command', 'work_dir'];

// The result of execute_command: the known keys first, in their order.
function dictionary(result) {
  const object = structured(result);
  check(Object.keys(object).slice(0, 7).join() === keys.join(), 'keys', object);
  return object;
}

// Where the commands run, which is here on this machine: the server's options and variables, how
// pytest comes into the .venv of the project, and what must hold when the server is gone.
export const here = {
  options: [],
  env: {},
  installs(run, project) {
    const [pip, ...pipArguments] = process.env.INTEROP_PIP.split(' ');
    const python = path.join(project, '.venv/bin/python');
    const installed = spawnSync(pip, [...pipArguments, '--python', python, 'install', '--quiet',
      '-r', process.env.INTEROP_PROJECT_REQUIREMENTS], { encoding: 'utf8' });
    check(installed.status === 0, 'pip', installed.stderr);
  },
  closed() {},
};

// the scenario ------------------------------------------------------------------------------------

export async function scenario(name, expectedVersion, connect, place = here) {
  const workspace = fs.realpathSync(
    fs.mkdtempSync(path.join(os.tmpdir(), 'codeexec-interop-')),
  );
  const project = path.join(workspace, 'project');
  const parameters = {
    command: server,
    args: ['--allowed-paths', workspace, '--timeout', '60', ...place.options],
    env: place.env,
    cwd: workspace,
    stderr: 'inherit',
  };
  let client;

  const step = steps(name);
  const run = async (command, more = {}, options = {}) =>
    dictionary(await client.call('execute_command', { command, work_dir: project, ...more },
      options));

  await step(`connects with protocol ${expectedVersion}`, async () => {
    client = await connect(parameters);
    check(client.version === expectedVersion, 'version', client.version);
    check(client.info?.name && client.info?.version, 'server info', client.info);
    check(servers().length === 1, 'one server process', servers().length);
  });
  if (!client) return;

  await step('lists the tools', async () => {
    const tools = await client.tools();
    check(tools.map(({ name }) => name).join() === names.join(), 'names', tools);
    for (const tool of tools) {
      const isObject = tool.inputSchema.type === 'object';
      check(tool.annotations.title && tool.description && isObject, 'told', tool);
      const reads = /^(get|list|read|search)_/.test(tool.name);
      check((tool.annotations.readOnlyHint ?? false) === reads, 'whether it only reads', tool);
    }
    const { properties, required } = tools[0].inputSchema;
    check(required?.join() === 'command', 'schema', tools[0].inputSchema);
    for (const argument of ['command', 'timeout', 'work_dir']) {
      check(properties[argument], argument, properties);
    }
  });

  await step('makes a Python project with a .venv and pytest', async () => {
    fs.mkdirSync(project);
    const venv = await run('python3 -m venv --without-pip .venv');
    check(venv.success, 'venv', venv);
    await place.installs(run, project);
    const files = await run(`cat > adder.py <<'END'
def add(a, b):
    return a - b  # wrong
END
cat > test_adder.py <<'END'
import sys

from adder import add


def test_add():
    assert add(2, 3) == 5


def test_runs_in_the_venv_of_the_project():
    assert sys.prefix.endswith("/project/.venv")
END`);
    check(files.success && files.exit_code === 0, 'files', files);
  });

  await step('runs its tests: one fails', async () => {
    const result = await run('pytest -q');
    check(!result.success && result.exit_code === 1, 'exit code', result);
    check(result.stdout.includes('1 failed, 1 passed'), 'report', result);
    check(result.command === 'pytest -q' && result.work_dir === project, 'echo', result);
  });

  // The seven keys and where it ran, when nothing happened; a note when something did.
  await step('is told what it does not know', async () => {
    const result = await run(`true ${'x'.repeat(300)}`);
    const others = Object.keys(result).filter((key) => !['container', 'place'].includes(key));
    check(others.join() === keys.join(), 'no other keys', result);
    check(result.command === `true ${'x'.repeat(195)}... (305 bytes)`, 'its beginning', result);
    const left = await run('sleep 300 & echo up');
    check(left.success && left.stdout === 'up\n', 'a success', left);
    const note = '1 process that the command left behind was ended; use start_background_shell';
    check(left.notes?.join() === note, 'a note', left);
  });

  await step('repairs it and runs its tests: all pass', async () => {
    check((await run("sed -i 's/a - b.*/a + b/' adder.py")).success, 'sed');
    const result = await run('pytest -q');
    check(result.success && result.exit_code === 0, 'exit code', result);
    check(result.stdout.includes('2 passed'), 'report', result);
  });

  await step('gets a refusal as a result', async () => {
    const result = await run('sudo true');
    check(!result.success && result.exit_code === -1, 'exit code', result);
    check(result.stderr.includes("Use of 'sudo' is not allowed"), 'message', result);
  });

  await step('sees progress while a command runs', async () => {
    const seen = [];
    const duration = unique();
    const abort = new AbortController();
    const call = run(`sleep ${duration}`, {}, {
      onprogress: ({ progress }) => {
        seen.push(progress);
        if (seen.length === 2) abort.abort();
      },
      signal: abort.signal,
    });
    await call.then(() => check(false, 'the call ended by itself'), () => undefined);
    check(seen.length >= 2 && seen[1] > seen[0], 'progress grows', seen);
    await until('the command is gone', () => !alive(duration));
  });

  await step('cancels a long call: its processes are gone, the server answers', async () => {
    const [duration, escaped] = [unique(), unique()];
    const abort = new AbortController();
    const call = run(`setsid sleep ${escaped} & sleep ${duration}; true`, {}, {
      signal: abort.signal,
    });
    const ended = call.then(() => 'answered', () => 'cancelled');
    await until('the command runs', () => alive(duration) && alive(escaped));
    check((await run('echo meanwhile')).stdout === 'meanwhile\n', 'a call beside it');
    abort.abort();
    check((await ended) === 'cancelled', 'the call is cancelled');
    await until('the command is gone', () => !alive(duration) && !alive(escaped));
    check((await run('echo still here')).stdout === 'still here\n', 'a call afterwards');
  });

  await step('times out a call that leaves grandchildren: none is alive', async () => {
    const [first, second, third] = [unique(), unique(), unique()];
    const result = await run(
      `echo begun; sleep ${first} & setsid sleep ${second} & (trap '' TERM; sleep ${third}) & wait`,
      { timeout: 1 },
    );
    check(!result.success && result.exit_code === -1, 'exit code', result);
    check(result.stderr.includes('Command timed out after 1 second'), 'message', result);
    check(result.stdout.includes('begun'), 'what it had printed', result);
    for (const duration of [first, second, third]) {
      await until(`sleep ${duration} is gone`, () => !alive(duration), 3);
    }
  });

  await useTools(step, client, workspace, project);

  await step('closes: the server and what it ran are gone', async () => {
    const [duration, escaped, background] = [unique(), unique(), unique()];
    run(`setsid sleep ${escaped} & sleep ${duration}`).catch(() => undefined);
    await client.call('start_background_shell', { command: `sleep ${background}` }, {});
    await until('the commands run', () => [duration, escaped, background].every(alive));
    await client.close();
    await until('the server is gone', () => servers().length === 0);
    await until('the commands are gone', () => ![duration, escaped, background].some(alive));
    await place.closed();
  });
  await client.close();  // again, for a step that failed before it
  fs.rmSync(workspace, { recursive: true, force: true });
}
