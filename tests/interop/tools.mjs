// Real work with each of the server's tools; the same steps as in python_tools.py.
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import {
  alive, ask as askClient, check, refusal as refusalOf, structured, unique, until,
} from './support.mjs';

export const names = ['execute_command', 'execute_code', 'start_background_shell',
  'get_background_shell_output', 'get_background_shell_status', 'write_background_shell',
  'kill_background_shell', 'list_background_shells', 'read_file', 'write_file', 'edit_file',
  'list_files', 'search_files', 'read_docstring'];

// One pixel.
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ'
  + 'AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const everyByte = Buffer.from(Array.from({ length: 256 }, (_, value) => value)).toString('base64');

const module = `"""Sums,
and nothing else."""
open("imported", "w").close()


def add(a, b):
    """Adds two numbers.

    Of any type.
    """
    return a + b


class Sum:
    def of(self, numbers):
        "Adds many numbers."
        return sum(numbers)
`;

// Each experiment goes on when all three have begun, and ends when it may.
const experiment = `import pathlib, sys, time
name, code = sys.argv[1], int(sys.argv[2])
pathlib.Path(name + ".begun").touch()
while len(list(pathlib.Path().glob("*.begun"))) < 3:
    time.sleep(0.02)
print(name, "has company", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
pathlib.Path(name + ".result").write_text(str(sum(range(100 * (code + 1)))))
print(name, "is done")
sys.exit(code)
`;

// Waits for a line after each epoch; at last it prints a log as fast as it can. A line and its end
// are written at once, also where PYTHONUNBUFFERED is set.
const training = `import sys
for epoch in range(1, 6):
    print(f"epoch {epoch} loss {1 / epoch:.3f}\\n", end="", flush=True)
    sys.stdin.readline()
for line in range(3000):
    print(f"saved layer {line} \\u00e4\\u20ac\\U0001f600")
`;
const log = Array.from({ length: 3000 },
  (_, line) => `saved layer ${line} \u00e4\u20ac\u{1f600}\n`);

const connects = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1');
  socket.on('connect', () => { socket.destroy(); resolve(true); });
  socket.on('error', () => resolve(false));
});

export async function useTools(step, client, workspace, project) {
  const ask = (tool, args, options) => askClient(client, tool, args, options);
  const refusal = (tool, args) => refusalOf(client, tool, args);
  const execute = (command, more = {}, options = {}) =>
    ask('execute_command', { command, work_dir: project, ...more }, options);
  const start = async (command, more = {}) => {
    const shell = await ask('start_background_shell', { command, work_dir: project, ...more });
    check(shell.status === 'running' && shell.pid > 0, 'it runs', shell);
    return shell.shell_id;
  };
  const output = (shell_id, more = {}) => ask('get_background_shell_output', { shell_id, ...more });
  const write = (shell_id, input, more = {}) =>
    ask('write_background_shell', { shell_id, input, ...more });
  const listed = async () => (await ask('list_background_shells')).shells;

  await step('writes files, and reads parts of them', async () => {
    const file_path = 'notes/deep/poem.txt';
    const whole = 'one\ntwo\nthree\nfour \u00e4\n';
    const written = await ask('write_file', { file_path, content: whole });
    const place = path.join(workspace, file_path);
    check(written.success && written.file_path === place && written.bytes === 22, 'told', written);
    check(fs.readFileSync(place, 'utf8') === whole, 'written', place);
    const read = (more) => ask('read_file', { file_path, ...more });
    const all = await read({});
    check(all.content === whole && all.encoding === 'utf-8' && all.size === 22, 'read', all);
    check(all.lines === 4 && all.next === 4 && all.more === false, 'to its end', all);
    const lines = await read({ offset: 1, count: 2 });
    check(lines.content === 'two\nthree\n' && lines.next === 3 && lines.more, 'lines', lines);
    const rest = await read({ offset: lines.next });
    check(rest.content === 'four \u00e4\n' && !rest.more, 'the rest', rest);
    const bytes = await read({ unit: 'bytes', offset: 4, count: 3 });
    check(bytes.content === 'two' && bytes.next === 7 && bytes.more, 'bytes', bytes);
    const list = await ask('list_files', { path: 'notes', depth: 2 });
    check(list.path === path.join(workspace, 'notes') && !list.more, 'list', list);
    const entries = list.entries.map(({ path: name, type, size }) =>
      [name, type, type === 'file' ? size : 0].join());
    check(entries.join(' ') === 'deep,directory,0 deep/poem.txt,file,22', 'entries', list);
    const edits = [{ old_text: 'two\n', new_text: 'second\n' }];
    const edited = await ask('edit_file', { file_path, edits });
    check(edited.diff.includes('-two\n+second\n'), 'difference', edited);
    const found = await ask('search_files', { pattern: '^sec.nd$', glob: '*.txt' });
    check(found.matches === 1 && found.text.endsWith('poem.txt\n2:second\n'), 'found', found);
    const outside = await refusal('read_file', { file_path: '/etc/shadow' });
    check(outside.includes('/etc/shadow'), 'which file', outside);
  });

  await step('gets bytes and images as they are', async () => {
    const encoding = 'base64';
    await ask('write_file', { file_path: 'every.bin', content: everyByte, encoding });
    const told = await refusal('read_file', { file_path: 'every.bin' });
    check(told.includes('base64'), 'what to do', told);
    const bytes = await ask('read_file', { file_path: 'every.bin', encoding });
    check(bytes.content === everyByte && bytes.encoding === encoding, 'file', bytes);
    const printed = await execute('cat ../every.bin; cat ../every.bin >&2', { encoding });
    check(printed.stdout === everyByte && printed.stderr === everyByte, 'output', printed);
    check(printed.encoding === encoding && printed.stdout_bytes === 256, 'told', printed);
    await ask('write_file', { file_path: 'pixel.png', content: png, encoding });
    const image = await client.call('read_file', { file_path: 'pixel.png' }, {});
    const [content] = image.content;
    check(content.type === 'image' && content.mimeType === 'image/png', 'image', image);
    check(content.data === png, 'data', image);
  });

  await step('reads docstrings and imports nothing', async () => {
    await ask('write_file', { file_path: 'project/sums.py', content: module });
    const read = async (name) => (await ask('read_docstring',
      { file_path: 'project/sums.py', ...(name && { function_name: name }) })).docstring;
    const [whole, add, of] = [await read(), await read('add'), await read('Sum.of')];
    check(whole === 'Sums,\nand nothing else.', 'module', whole);
    check(add === 'Adds two numbers.\n\nOf any type.', 'function', add);
    check(of === 'Adds many numbers.', 'method', of);
    const missing = await refusal('read_docstring',
      { file_path: 'project/sums.py', function_name: 'Sum.by' });
    check(missing.includes('Sum.by'), 'what is missing', missing);
    for (const place of [workspace, project]) {
      check(!fs.existsSync(path.join(place, 'imported')), 'imported', place);
    }
  });

  await step('runs code', async () => {
    const run = (code, more = {}) => ask('execute_code', { code, work_dir: project, ...more });
    const code = 'import sys\nprint(f"{sys.prefix}" + \'$HOME "`\')\n';
    const python = await run(code, { language: 'python' });
    check(python.stdout === `${project}/.venv$HOME "\`\n` && python.success, 'python', python);
    check(python.exit_code === 0 && !('blocks' in python), 'python', python);
    const left = fs.readdirSync(project).filter((name) => name.startsWith('tmp_code'));
    check(!python.code_file && left.length === 0, 'its file is gone', python);
    const bash = await run('words=(a "b c")\necho "${#words[@]}"', { language: 'bash' });
    check(bash.success && bash.stdout === '2\n', 'bash', bash);
    const page = await run('<p>a page</p>\n', { language: 'html' });
    check(page.success && page.blocks === 0, 'what is only saved', page);
    check(path.dirname(page.code_file) === project, 'its file', page);
    const refused = await run('sudo true', { language: 'bash' });
    check(!refused.success && refused.outcome === 'refused' && refused.rule, 'sudo', refused);
  });

  await step('runs Markdown block by block until one fails', async () => {
    const run = (code) => ask('execute_code', { code, work_dir: project });
    const both = await run(`First:
\`\`\`python
# filename: tools/make.py
open("made", "w").write("by python")
\`\`\`
then
\`\`\`bash
cat made; echo
\`\`\`
`);
    check(both.success && both.blocks === 2 && both.stdout === 'by python\n', 'both', both);
    const place = path.join(project, 'tools/make.py');
    check(both.code_file === place && both.files[0] === place, 'its file', both);
    const first = await run('```bash\necho one; exit 3\n```\n```bash\ntouch second\n```\n');
    check(!first.success && first.exit_code === 3 && !('blocks' in first), 'the first', first);
    check(first.stdout === 'one\n', 'what it printed', first);
    check(!fs.existsSync(path.join(project, 'second')), 'the second is not run', first);
  });

  await step('serves a web page in the background until it is killed', async () => {
    await ask('write_file', { file_path: 'project/site/page.txt', content: 'a page\n' });
    const directory = path.join(project, 'site');
    const shell_id = await start(
      `python3 -u -m http.server 0 --bind 127.0.0.1 --directory ${directory}`,
    );
    const ready = await output(shell_id, { wait_for: 'Serving HTTP on .* port [0-9]+ ' });
    check(ready.wait === 'matched' && ready.status === 'running', 'ready', ready);
    check(ready.exit_code === null, 'no exit code', ready);
    const port = Number(/ port (\d+) /.exec(ready.stdout)[1]);
    const page = await execute(`curl -sS --noproxy '*' http://127.0.0.1:${port}/page.txt`);
    check(page.success && page.stdout === 'a page\n', 'the page', page);
    const logged = await output(shell_id, { since: ready.next, wait_for: '"GET /page.txt .* 200' });
    // The end of the line that told the port may have come later than its start.
    check(logged.wait === 'matched' && logged.stdout.trim() === '', 'its log', logged);
    const going = await ask('get_background_shell_status', { shell_id });
    check(going.status === 'running' && going.stdout_bytes > 0, 'status', going);
    check(alive(directory), 'the process', directory);
    const killed = await ask('kill_background_shell', { shell_id });
    check(killed.status === 'killed' && killed.signal === 'SIGTERM', 'killed', killed);
    check(!alive(directory), 'nothing of it runs', directory);
    check(!(await connects(port)), 'the port is closed', port);
    const again = await ask('kill_background_shell', { shell_id });
    check(again.status === 'killed' && again.signal === null && again.message, 'again', again);
    const status = await ask('get_background_shell_status', { shell_id });
    check(status.status === 'killed' && status.cwd === project, 'status', status);
    const rest = await output(shell_id, { since: logged.next, wait_for: 'exit' });
    check(rest.status === 'killed' && rest.wait === 'ended', 'it has ended', rest);
  });

  await step('runs three experiments side by side', async () => {
    const work_dir = path.join(project, 'experiments');
    await ask('write_file', { file_path: path.join(work_dir, 'run.py'), content: experiment });
    const before = (await listed()).length;
    const experiments = await Promise.all(['a', 'b', 'c'].map(async (name, code) => ({
      name, code, id: await start(`python3 run.py ${name} ${code}`, { work_dir }),
    })));
    await Promise.all(experiments.map(async ({ id }) => {
      const going = await output(id, { wait_for: 'has company' });
      check(going.wait === 'matched' && going.status === 'running', 'going on', going);
    }));
    const running = (await listed()).filter(({ status }) => status === 'running');
    check(experiments.every(({ id }) => running.some(({ shell_id }) => shell_id === id)),
      'three run', running);
    await ask('write_file', { file_path: path.join(work_dir, 'go'), content: '' });
    await Promise.all(experiments.map(async ({ name, code, id }) => {
      const end = await output(id, { wait_for: 'exit' });
      check(end.wait === 'ended' && end.exit_code === code, 'exit', end);
      check(end.status === (code === 0 ? 'stopped' : 'failed'), 'status', end);
      check(end.stdout === `${name} has company\n${name} is done\n`, 'output', end);
      const result = await ask('read_file', { file_path: path.join(work_dir, `${name}.result`) });
      check(result.content === ['4950', '19900', '44850'][code], 'result', result);
    }));
    const all = await listed();
    check(all.length === before + 3, 'three more', all);
    for (const { name, code, id } of experiments) {
      const shell = all.find(({ shell_id }) => shell_id === id);
      check(shell.exit_code === code && shell.cwd === work_dir, 'listed', shell);
      check(shell.command === `python3 run.py ${name} ${code}`, 'command', shell);
    }
  });

  await step('watches a training: no line is lost or told twice', async () => {
    await ask('write_file', { file_path: 'project/train.py', content: training });
    const id = await start('python3 train.py', {});
    let since = '';
    for (let epoch = 1; epoch <= 5; ++epoch) {
      const line = `epoch ${epoch} loss ${(1 / epoch).toFixed(3)}\n`;
      const news = await output(id, { since, wait_for: '^epoch \\d loss \\d\\.\\d{3}$' });
      check(news.wait === 'matched' && news.stdout === line, `epoch ${epoch}`, news);
      const nothing = await output(id, { since: news.next });
      check(nothing.stdout === '' && nothing.next === news.next, 'nothing new', nothing);
      since = news.next;
      const early = await output(id, { since, wait_for: 'epoch', timeout: 0.01 });
      check(early.wait === 'timed_out' && early.stdout === '', 'too early', early);
      const written = await write(id, '\n');
      check(written.written === 1 && written.status === 'running', 'written', written);
    }
    const pieces = [];
    for (let more = true; more; ) {
      const news = await output(id, { since, wait_for: '.' });
      more = news.wait === 'matched';
      pieces.push(news.stdout);
      since = news.next;
      check(news.stdout_missed_bytes === undefined, 'nothing is missed', news.next);
    }
    check(pieces.join('') === log.join(''), 'the log', pieces.map((piece) => piece.length));
    const last = await output(id, { tail: 2 });
    check(last.stdout === log.slice(-2).join('') && last.stdout_missed_bytes > 0, 'tail', last);
    check(last.status === 'stopped' && last.exit_code === 0, 'its end', last);
  });

  await step('types into programs', async () => {
    const python = await start('python3 -i -q');
    await write(python, 'x = 6\n');
    await write(python, 'print(f"x is {x * 7}\\n", end="")\n');
    const answer = await output(python, { wait_for: '^x is \\d+$' });
    check(answer.wait === 'matched' && answer.stdout === 'x is 42\n', 'its answer', answer);
    await write(python, 'import sys; sys.exit(x)\n');
    const left = await output(python, { wait_for: 'exit', since: answer.next });
    check(left.wait === 'ended' && left.exit_code === 6 && left.stdout === '', 'exit', left);
    const late = await refusal('write_background_shell', { shell_id: python, input: 'late\n' });
    check(late.includes('ended'), 'too late', late);
    const cat = await start('cat; echo and out');
    await write(cat, '\u00e4 line\n');
    const line = await output(cat, { wait_for: 'line$' });
    check(line.stdout === '\u00e4 line\n', 'line', line);
    await write(cat, 'the last', { close_input: true });
    const end = await output(cat, { since: line.next, wait_for: 'exit' });
    check(end.stdout === 'the lastand out\n' && end.status === 'stopped', 'end of input', end);
  });

  await step('leaves to the background what takes long', async () => {
    const command = 'echo first; until [ -e over ]; do sleep 0.05; done; echo second';
    // On a busy machine it may need longer to print its first line.
    const attempts = [0.3, 1, 3, 10];
    let answer;
    do {
      if (answer) await ask('kill_background_shell', { shell_id: answer.shell_id });
      answer = await execute(command, { run_in_background_after: attempts.shift() });
      check(answer.outcome === 'running' && answer.success, 'running', answer);
      check(!('exit_code' in answer) && answer.notes.length === 1, 'a note', answer);
    } while (answer.stdout === '' && attempts.length > 0);
    const { shell_id } = answer;
    check(answer.stdout === 'first\n', 'so far', answer);
    check((await output(shell_id)).status === 'running', 'it goes on', answer);
    await ask('write_file', { file_path: 'project/over', content: '' });
    const end = await output(shell_id, { wait_for: 'exit' });
    check(end.stdout === 'first\nsecond\n' && end.status === 'stopped', 'its end', end);
    const before = (await listed()).length;
    const quick = await execute('echo quick', { run_in_background_after: 30 });
    check(quick.success && quick.stdout === 'quick\n' && !quick.shell_id, 'quick', quick);
    check((await listed()).length === before, 'not known as a shell', quick);
  });

  await step('keeps the directory and the variables of a session', async () => {
    const inSession = (session_id, command, more = {}) =>
      ask('execute_command', { command, session_id, ...more });
    const begun = await inSession('first.1', 'mkdir -p d/e && cd d/e && export WORDS="a  b"',
      { work_dir: project });
    check(begun.success && begun.session_id === 'first.1', 'begun', begun);
    check(begun.session_work_dir === path.join(project, 'd/e'), 'its directory', begun);
    const after = await inSession('first.1', 'pwd; echo "$WORDS"; cd ../..');
    check(after.stdout === `${project}/d/e\na  b\n`, 'both are kept', after);
    check(after.session_work_dir === project, 'its directory now', after);
    const other = await inSession('second', 'pwd; echo "$WORDS"');
    check(other.stdout === `${workspace}\n\n`, 'another session', other);
  });

  await step('sees what is printed while it runs', async () => {
    for (const [tool, argument] of [['execute_command', 'command'], ['execute_code', 'code']]) {
      const heard = path.join(project, `heard.${tool}`);
      const script = `echo hello '\u20ac'; until [ -e '${heard}' ]; do sleep 0.05; done; echo bye`;
      const messages = [];
      const result = await ask(tool, { [argument]: script, work_dir: project, timeout: 20 }, {
        onprogress: ({ message }) => {
          messages.push(message);
          if (messages.join('').includes('hello \u20ac\n')) fs.writeFileSync(heard, '');
        },
      });
      check(result.stdout === 'hello \u20ac\nbye\n' && result.success, tool, result);
      check(messages.join('').split('hello \u20ac\n').length === 2, 'told once', messages);
    }
  });

  // Of the clients that have the tasks of 2025-11-25.
  if (client.tasks) await step('runs commands as tasks', async () => {
    const run = (command) => client.tasks.callToolStream(
      { name: 'execute_command', arguments: { command, work_dir: project } }, undefined,
      { task: { ttl: 60000 } });
    let last;
    for await (const message of run('until [ -e go-on ]; do sleep 0.05; done; echo went on')) {
      last = message;
      if (message.type !== 'taskCreated') continue;
      const { tasks } = await client.tasks.listTasks();
      const found = tasks.find(({ taskId }) => taskId === message.task.taskId);
      check(found?.status === 'working', 'listed', tasks);
      fs.writeFileSync(path.join(project, 'go-on'), '');
    }
    check(last.type === 'result', 'a result', last);
    check(structured(last.result).stdout === 'went on\n', 'its output', last);
    const time = unique();
    for await (const message of run(`sleep ${time}`)) {
      last = message;
      if (message.type !== 'taskCreated') continue;
      await until('it runs', () => alive(time));
      const cancelled = await client.tasks.cancelTask(message.task.taskId);
      check(cancelled.status === 'cancelled', 'cancelled', cancelled);
    }
    check(last.type === 'error' && last.error.message.includes('cancelled'), 'its end', last);
    await until('it is gone', () => !alive(time));
  });

  await step('is told what to do when a call makes no sense', async () => {
    const shell_id = 'shell_0123456789abcdef';
    for (const tool of names.filter((name) => /_background_shell(?!s)/.test(name))) {
      if (tool === 'start_background_shell') continue;
      const more = tool.startsWith('write') ? { input: '' } : {};
      const error = await refusal(tool, { shell_id, ...more });
      check(error.includes(shell_id) && /list/.test(error), tool, error);
    }
    const sudo = await client.call('start_background_shell', { command: 'sudo true' }, {});
    check(sudo.isError && structured(sudo).rule, 'sudo', sudo);
    check(structured(sudo).error.includes("Use of 'sudo' is not allowed"), 'sudo', sudo);
    const id = await start('cat');
    check((await refusal('get_background_shell_output', { shell_id: id, since: 'x' }))
      .includes('next'), 'since');
    check((await refusal('get_background_shell_output', { shell_id: id, wait_for: '(' }))
      .includes('wait_for'), 'wait_for');
    // Who gives up waiting ends nothing.
    const abort = new AbortController();
    const waiting = output(id, { wait_for: 'exit' });
    const given_up = ask('get_background_shell_output', { shell_id: id, wait_for: 'never' },
      { signal: abort.signal }).then(() => 'answered', () => 'cancelled');
    abort.abort();
    check((await given_up) === 'cancelled', 'cancelled');
    check((await output(id)).status === 'running', 'it goes on');
    await write(id, '', { close_input: true });
    check((await waiting).wait === 'ended', 'the other one goes on waiting');
  });
}
