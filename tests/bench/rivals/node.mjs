// child_process of Node; the tasks are those of driver.hpp.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const ended = (child) => new Promise((resolve, reject) => {
  child.on('error', reject);
  child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`status ${code}`))));
});
const start = () => ended(spawn('/bin/true', { stdio: 'ignore' }));
const held = [];
const tasks = {
  run: start,
  capture: async () => {
    const child = spawn('/bin/echo', ['hello'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data) => { text += data; });
    await ended(child);
    if (text !== 'hello\n') throw new Error(text);
  },
  many: () => Promise.all(Array.from({ length: 200 }, start)),
};
for await (const line of createInterface({ input: process.stdin })) {
  const [task, count] = line.split(' ');
  const begin = performance.now();
  if (task === 'hold')
    for (let i = 0; i < count; i += 1024) held.push(Buffer.alloc(2 ** 30, 1));
  else
    for (let i = 0; i < count; ++i) await tasks[task]();
  console.log(((performance.now() - begin) * 1000 / count).toFixed(3));
}
