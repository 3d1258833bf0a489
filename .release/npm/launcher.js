#!/usr/bin/env node
// Runs the program of the package for this system, with our input, output and arguments.
'use strict';
const { spawn } = require('node:child_process');

const name = `codeexec-mcp-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/codeexec-mcp`);
} catch {
  console.error(
    `codeexec-mcp: there is no package ${name} beside this one: either npm was told to leave out ` +
      'optional packages (--omit=optional), or there is no program for this system',
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`codeexec-mcp: cannot run ${program}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
