"""N: the network."""

import os
import select
import shutil
import socket

from cases import IDLE, NOT_ROOT, SYSTEM_PATH, attack
from judges import reached, received, shown, succeeded


def sends(name, title, script, **options):
    attack(name, title, received, script, **options)


sends("N01", "TCP", '"$A" tcp "$TCP"')
sends("N02", "TCP over IPv6", '"$A" tcp6 "$TCP6"')
sends("N03", "UDP", '"$A" udp "$UDP"')
sends("N04", "UDP over IPv6", '"$A" udp6 "$UDP6"')
sends("N05", "MPTCP", '"$A" mptcp "$TCP"')
sends("N06", "TCP fast open", '"$A" fast-open "$TCP"')
sends("N07", "DNS by hand", '"$A" dns "$UDP"')
sends("N08", "/dev/tcp of bash", 'bash -c "echo x > /dev/tcp/127.0.0.1/$TCP"')
sends("N09", "/dev/udp of bash", 'bash -c "echo x > /dev/udp/127.0.0.1/$UDP"')
sends("N10", "io_uring", '"$A" ring-tcp "$TCP"')
if shutil.which("curl", path=SYSTEM_PATH):
    sends("N11", "curl", 'curl -s -m 2 "http://127.0.0.1:$TCP/" & sleep 0.3; exit 0')
if os.uname().machine == "x86_64":
    sends("N12", "socketcall of i386", '"$A" i386 "$TCP"; exit 0')
sends("N13", "a socket with a path, like docker.sock", '"$A" unix-stream "$SOCKET"')
sends("N14", "a datagram socket with a path, like /dev/log", '"$A" unix-datagram "$DATAGRAM"')
sends("N15", "an abstract socket", '"$A" abstract-stream "$ABSTRACT"')
sends("N16", "an abstract datagram socket", '"$A" abstract-datagram "$ABSTRACT_DATAGRAM"')
sends("N17", "half of a datagram pair", f'"$A" pair-send "$DATAGRAM" {int(socket.SOCK_DGRAM)}')
sends("N18", "half of a stream pair", f'"$A" pair-send "$SOCKET" {int(socket.SOCK_STREAM)}',
      no_control="the kernel does not do it")
sends("N19", "half of a packet pair", f'"$A" pair-send "$SOCKET" {int(socket.SOCK_SEQPACKET)}',
      no_control="the kernel does not do it")
sends("N20", "half of a raw pair", f'"$A" pair-send "$DATAGRAM" {int(socket.SOCK_RAW)}')
sends("N21", "python", 'python3 -c "import socket; socket.create_connection((\'127.0.0.1\','
      '$TCP))"', no_control="there may be none")


def inherit_socket(case):
    case.listen()
    one = socket.create_connection(case.listeners[0].getsockname())
    peer = case.listeners[0].accept()[0]
    os.set_inheritable(one.fileno(), True)
    case.pass_fds.append(one.fileno())
    case.listeners = [peer]
    case.closers += [one.close, peer.close]


def received_bytes(case, run):
    ready, _, _ = select.select(case.listeners, [], [], 0.02)
    return "bytes came" if ready else None


attack("N22", "a connection that the server was started with", received_bytes, '"$A" inherited',
       setup=inherit_socket, no_control=IDLE)
attack("N23", "listen", succeeded, '"$A" listen')
attack("N24", "any socket at all", shown(r"^sockets [1-9]"), '"$A" all-sockets')
for name, title, family, kind, protocol, ordinary in (
    ("N25", "a raw socket", socket.AF_INET, socket.SOCK_RAW, 1, False),
    ("N26", "a ping socket", socket.AF_INET, socket.SOCK_DGRAM, 1, False),
    ("N27", "a packet socket", 17, socket.SOCK_RAW, 0, False),
    ("N28", "netlink, routes", 16, socket.SOCK_RAW, 0, True),
    ("N29", "netlink, events of devices", 16, socket.SOCK_RAW, 15, True),
    ("N30", "netlink, sockets", 16, socket.SOCK_RAW, 4, True),
    ("N31", "vsock", 40, socket.SOCK_STREAM, 0, True),
    ("N32", "the kernel's cryptography (AF_ALG)", 38, socket.SOCK_SEQPACKET, 0, True),
    ("N33", "SCTP", socket.AF_INET, socket.SOCK_STREAM, 132, True),
    ("N34", "UDP-Lite", socket.AF_INET, socket.SOCK_DGRAM, 136, True),
    ("N35", "XDP", 44, socket.SOCK_RAW, 0, False),
    ("N36", "bluetooth", 31, socket.SOCK_RAW, 1, True),
    ("N37", "CAN", 29, socket.SOCK_RAW, 1, True),
    ("N38", "TIPC", 30, socket.SOCK_RDM, 0, True),
    ("N39", "RDS", 21, socket.SOCK_SEQPACKET, 0, True),
    ("N40", "SMC", 43, socket.SOCK_STREAM, 0, True),
):
    attack(name, title, reached, f'"$A" socket {int(family)} {int(kind)} {protocol}',
           no_control_user=None if ordinary else NOT_ROOT,
           no_control_root="it depends on the machine" if name == "N26" else None)
for name, title, family, kind in (
    ("N41", "vsock, with the host's network", 40, socket.SOCK_STREAM),
    ("N42", "a packet socket, with the host's network", 17, socket.SOCK_RAW),
    ("N43", "AF_ALG, with the host's network", 38, socket.SOCK_SEQPACKET),
):
    attack(name, title, reached, f'"$A" socket {family} {int(kind)} 0', network="host",
           no_control_user=NOT_ROOT if family == 17 else None)
sends("N44", "an abstract socket, with the host's network", '"$A" abstract-stream "$ABSTRACT"',
      network="host")
sends("N45", "the host's 127.0.0.1 from a loopback of one's own", '"$A" tcp "$TCP"',
      network="loopback")
sends("N46", "the host's UDP from a loopback of one's own", '"$A" udp "$UDP"',
      network="loopback")
sends("N47", "an abstract socket from a loopback of one's own",
      '"$A" abstract-stream "$ABSTRACT"', network="loopback")
sends("N48", "a socket with a path from a loopback of one's own",
      '"$A" unix-stream "$SOCKET"', network="loopback")
sends("N49", "an abstract socket, with sockets with a path",
      '"$A" abstract-stream "$ABSTRACT"', options=["--unix-sockets"])
attack("N50", "take an abstract name by half of a pair", succeeded, '"$A" pair-bind "x$UNIQUE"')
