// Writes the package.json of the npm package, or of the one for a processor:
//   node packages.mjs VERSION SUMMARY [CPU]
const [version, description, cpu] = process.argv.slice(2);
const processors = ['arm64', 'x64']; // as Node.js calls them
const license = 'MIT AND Apache-2.0 WITH LLVM-exception';
const base = { version, description, keywords: ['mcp', 'sandbox', 'agent', 'shell'] };

const launcher = {
  name: 'codeexec-mcp',
  ...base,
  license: 'MIT',
  bin: { 'codeexec-mcp': 'launcher.js' },
  engines: { node: '>=16' },
  // npm installs the one whose os and cpu are those of the machine.
  optionalDependencies: Object.fromEntries(
    processors.map((processor) => [`codeexec-mcp-linux-${processor}`, version]),
  ),
};
const program = {
  name: `codeexec-mcp-linux-${cpu}`,
  ...base,
  license,
  os: ['linux'],
  cpu: [cpu],
  // Yarn, which keeps packages zipped, cannot run a program in there.
  preferUnplugged: true,
};
console.log(JSON.stringify(cpu ? program : launcher, null, 2));
