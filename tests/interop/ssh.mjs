// Commands over ssh: the conversation of scenario.mjs there. $INTEROP_SSH is the folder of a server
// of ssh that runs (tests/helpers/sshd.sh), with an agent in it.
import { here, scenario } from './scenario.mjs';
import { check, started, until } from './support.mjs';

const agent = `${process.env.INTEROP_SSH}/agent`;
const agents = () => started(agent, '--place');

const overSsh = {
  options: ['--execution-mode', 'ssh', '--place-host', 'box', '--place-agent-path', agent],
  env: { PATH: `${process.env.INTEROP_SSH}/bin:${process.env.PATH}` },
  async installs(run, project) {
    const there = await run('echo "$SSH_CONNECTION"');
    check(there.stdout.startsWith('127.0.0.1 '), 'over ssh', there);
    check(agents() === 1, 'one agent', agents());
    await here.installs(run, project);
  },
  closed: () => until('the agent is gone', () => agents() === 0),
};

export const throughSsh = (name, version, connect) => scenario(name, version, connect, overSsh);
