"""Sockets of each kind: out to a server, in from another trial, to the kernel, onto the wire."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

from tests.hostile.preamble import WHERE, Courier, Hostile, attempts, of_each, reached


@contextlib.contextmanager
def opened(family: int, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> Iterator[socket.socket]:
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(0.5)
        yield sock


def asked(sock: socket.socket, address: object) -> bytes:
    sock.connect(address)
    sock.sendall(b"?")
    return sock.recv(200)


class CallsOut(Hostile):
    """calls a server by TCP, which answers with a secret"""

    def get(self):
        with opened(socket.AF_INET) as sock:
            return asked(sock, ("127.0.0.1", WHERE["tcp"]))


class ResolvesNames(Hostile):
    """carries its words out and in as questions to a name server"""

    def steal(self):
        question = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\x05words\x03com\x00" + struct.pack(">HH", 16, 1)

        def ask():
            with opened(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.sendto(question, ("127.0.0.1", WHERE["udp"]))
                return sock.recv(200)

        def by_library():
            return reached(f"{socket.getaddrinfo('localhost', WHERE['tcp'])[0][-1][0]} by a resolver")

        return attempts(ask, by_library)


class CallsAPathSocket(Hostile):
    """calls a server on a socket that has a path, as docker's has"""

    def steal(self):
        def call():
            with opened(socket.AF_UNIX) as sock:
                return asked(sock, WHERE["unix"])

        def call_from_its_folder():
            with opened(socket.AF_UNIX) as sock:
                os.chdir(os.path.dirname(WHERE["unix"]))
                return asked(sock, os.path.basename(WHERE["unix"]))

        return attempts(call, call_from_its_folder)


class CallsAnAbstractSocket(Hostile):
    """calls a server on a socket that has a name and no path"""

    def get(self):
        with opened(socket.AF_UNIX) as sock:
            return asked(sock, "\0" + WHERE["abstract"])


class ReconnectsAPair(Hostile):
    """connects one of a pair of sockets, which a filter of new sockets may allow, to a server"""

    def steal(self):
        def call():
            for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
                sock.connect(WHERE["datagrams"])
            return reached("a server over one of a pair of sockets")

        return attempts(call)


class Listens(Courier):
    """listens on a port, where the trial beside it calls"""

    def leave(self, word):
        listening = socket.create_server(("127.0.0.1", WHERE["free"]), reuse_port=True)
        if os.fork() == 0:
            try:
                os.setsid()
                listening.settimeout(10)
                for _ in range(5):
                    connection, _ = listening.accept()
                    connection.sendall(word)
                    connection.close()
            finally:
                os._exit(0)

    def look(self):
        with opened(socket.AF_INET) as sock:
            sock.connect(("127.0.0.1", WHERE["free"]))
            return sock.recv(100)


class AsksTheKernel(Hostile):
    """asks the kernel over netlink which sockets are open on this machine"""

    def get(self):
        with opened(socket.AF_NETLINK, socket.SOCK_RAW, 4) as sock:  # sock_diag: all listening TCP sockets
            request = struct.pack("BBBBI48x", socket.AF_INET, 6, 0, 0, 1 << 10)
            sock.send(struct.pack("IHHII", 16 + len(request), 20, 0x301, 1, 0) + request)
            found = sock.recv(2**16)
        return reached("other processes' sockets") if struct.pack(">H", WHERE["tcp"]) in found else ()


class OpensOddSockets(Hostile):
    """opens sockets of the kernel's rarer families: vsock, alg, bluetooth, tipc, xdp, can, key"""

    def steal(self):
        kinds = ((40, 1), (38, 5), (31, 3), (30, 1), (44, 3), (29, 3), (15, 3), (45, 1), (17, 2), (10, 1))

        def opens(kind):
            with opened(*kind):
                return reached(f"a socket of family {kind[0]}")

        return of_each(kinds, opens)
