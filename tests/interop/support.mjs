// What the steps of the TypeScript clients are made of: checks, waiting, and looking at processes.
import fs from 'node:fs';

export const server = process.env.CODEEXEC_MCP;

// processes ---------------------------------------------------------------------------------------

function commandLines() {
  const found = new Map();
  for (const pid of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const status = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
      if (/\) Z /.test(status)) continue;
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
export const alive = (word) => [...commandLines().values()].some((p) => p.words.includes(word));
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

// What a tool has answered, which must be the same in both of its forms.
export function structured(result) {
  const object = result.structuredContent;
  check(object !== undefined, 'structured content', result);
  const text = JSON.parse(result.content[0].text);
  check(JSON.stringify(text) === JSON.stringify(object), 'text equals structure', result);
  return object;
}
