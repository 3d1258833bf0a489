"""Setups that attacks of more than one theme have."""

import os


def inherit(case):
    directory = os.open(case.path("out"), os.O_RDONLY | os.O_DIRECTORY)
    file = os.open(case.path("out/canary"), os.O_RDWR)
    for fd in (directory, file):
        os.set_inheritable(fd, True)
        case.closers.append(lambda fd=fd: os.close(fd))
    case.pass_fds += [directory, file]


def terminal(case):
    leader, follower = os.openpty()
    case.closers.append(lambda: (os.close(leader), os.close(follower)))
    os.chown(os.ttyname(follower), case.suite.uid, -1)
    os.write(leader, (case.token + "\n").encode())
    case.terminal = leader
    os.read(leader, 4096)  # the echo of what was typed
    case.variables["TERMINAL"] = os.ttyname(follower)
