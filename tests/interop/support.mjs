// What the steps of the TypeScript clients are made of: checks, waiting, and looking at processes.
import fs from 'node:fs';

export const server = process.env.CODEEXEC_MCP;

// processes ---------------------------------------------------------------------------------------

function commandLines() {
  const found = new Map();
  for (const pid of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const status = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
      // A supervisor that waits for a command has the command line of its program.
      if (/\) Z |^\d+ \(codeexec\)/.test(status)) continue;
      found.set(Number(pid), {
        parent: Number(status.slice(status.lastIndexOf(')') + 4).split(' ')[0]),
        words: fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0'),
      });
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}
// How many processes have it for an argument.
export const count = (word) =>
  [...commandLines().values()].filter((p) => p.words.includes(word)).length;
export const alive = (word) => count(word) > 0;
// How many processes have these for their first words.
export const started = (...first) =>
  [...commandLines().values()].filter((p) => first.every((word, i) => p.words[i] === word)).length;
// Whether it stands anywhere in the arguments of a process.
export const mentions = (text) =>
  [...commandLines().values()].some((p) => p.words.some((word) => word.includes(text)));
export const servers = () =>
  [...commandLines()].filter(([, p]) => p.parent === process.pid && p.words.includes(server));

let durations = 0;
// A time to sleep that no other process on this machine uses, to be found again by.
export const unique = () => `${300 + durations++}.${String(process.pid).padStart(7, '0')}`;

// Waits for something that must happen soon; the limit is only against hanging.
export async function until(what, condition, seconds = 10) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`waited ${seconds} s in vain: ${what}`);
}

// checks ------------------------------------------------------------------------------------------

export function check(good, what, value) {
  if (!good) throw new Error(`${what}: ${JSON.stringify(value)}`);
}

// What a tool has answered: an object, and lines for a model.
export function structured(result) {
  const object = result.structuredContent;
  check(object !== undefined, 'structured content', result);
  const { text } = result.content[0];
  check(text.length > 0 && !text.startsWith('{'), 'text as lines', result);
  return object;
}

export async function ask(client, tool, args = {}, options = {}) {
  const result = await client.call(tool, args, options);
  check(!result.isError, `${tool} succeeds`, result);
  return structured(result);
}
// The message of a call that must fail.
export async function refusal(client, tool, args) {
  const result = await client.call(tool, args, {});
  check(result.isError, `${tool} fails`, result);
  const answer = structured(result);
  check(answer.success === false && typeof answer.error === 'string', 'an error', answer);
  return answer.error;
}

// steps -------------------------------------------------------------------------------------------

let failures = 0;
// Runs the steps of one client, and goes on after one that failed.
export const steps = (name) => async (what, action) => {
  try {
    await action();
    console.log(`ok: ${name}: ${what}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED: ${name}: ${what}: ${error.message}`);
  }
};
export function finish() {
  process.exitCode = failures === 0 ? 0 : 1;
}
