#!/usr/bin/env python3
"""Tests the example proxy: by plain sockets, or with the words `curl`, `nc` or `socat` by these.

usage: proxy_test.py PROGRAM sockets|curl|nc|socat; exits with 77 where the tool is not installed.
"""

import contextlib
import functools
import http.server
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from server import Server as ExampleServer

PROGRAM = ""


class Proxy(ExampleServer):
    def __init__(self, port, *more):
        super().__init__([PROGRAM, "0", f"127.0.0.1:{port}", *more])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))


def received(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


@contextlib.contextmanager
def target(serve):
    """A server whose connections each get serve(connection) in a thread; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = []

        def one(connection):
            with connection, contextlib.suppress(ConnectionError):
                serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threads.append(threading.Thread(target=one, args=(connection,)))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for t in threads:
                t.join()


def answer_backwards(connection):
    """Only once it has all."""
    data = received(connection)
    connection.sendall(data[::-1])


class Sockets(unittest.TestCase):
    def test_half_close(self):
        with target(answer_backwards) as port, Proxy(port) as proxy:
            connections = [proxy.connect() for _ in range(20)]
            sent = [random.randbytes(300_000) for _ in connections]
            for c, data in zip(connections, sent):
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
            for c, data in zip(connections, sent):
                self.assertEqual(received(c), data[::-1])
                c.close()

    def test_the_server_may_end_first(self):
        got = []

        def serve(connection):
            connection.sendall(b"that is all")
            connection.shutdown(socket.SHUT_WR)
            got.append(received(connection))

        with target(serve) as port:
            with Proxy(port) as proxy, proxy.connect() as c:
                self.assertEqual(received(c), b"that is all")
                c.sendall(b"but I go on")
            self.assertEqual(got, [b"but I go on"])

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with Proxy(port) as proxy, proxy.connect() as c:
            self.assertEqual(received(c), b"")

    def test_a_reset_is_passed_on(self):
        begun, ended = threading.Event(), threading.Event()

        def serve(connection):
            connection.recv(1)
            begun.set()
            with contextlib.suppress(ConnectionError):
                received(connection)
            ended.set()

        with target(serve) as port, Proxy(port) as proxy:
            c = proxy.connect()
            c.sendall(b"x")
            begun.wait()
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
            ended.wait()

    def test_silence_ends_it(self):
        with target(received) as port, Proxy(port, "50") as proxy, proxy.connect() as c:
            with contextlib.suppress(ConnectionError):
                self.assertEqual(c.recv(1), b"")

    def test_who_takes_nothing_ends_it(self):
        def pour(connection):
            with contextlib.suppress(ConnectionError):
                while True:
                    connection.sendall(b"x" * 65536)
            ended.set()

        ended = threading.Event()
        with target(pour) as port, Proxy(port, "100") as proxy, proxy.connect():
            ended.wait()  # although the connection to the proxy is still open

    def test_one_direction_may_be_silent(self):
        """While the other one moves. A machine that stands still for the time of idleness looks like silence, so there
        are several times of idleness; a proxy that looks at one direction alone fails all of them."""

        def trickle(connection):
            end = time.monotonic() + 3 * idle
            while time.monotonic() < end:
                connection.sendall(b".")
                time.sleep(idle / 50)
            connection.sendall(b"!")

        for idle in (0.2, 1, 4):
            with target(trickle) as port, Proxy(port, str(int(idle * 1000))) as proxy, proxy.connect() as c:
                try:
                    if received(c).endswith(b"!"):
                        return
                except ConnectionError:
                    pass
        self.fail("the proxy ended a connection over which something moved")


class Curl(unittest.TestCase):
    def test_get(self):
        with tempfile.TemporaryDirectory() as folder:
            content = random.randbytes(2_000_000)
            Path(folder, "file").write_bytes(content)

            class Quiet(http.server.SimpleHTTPRequestHandler):
                def log_message(self, *_):
                    pass

            with http.server.ThreadingHTTPServer(
                ("127.0.0.1", 0), functools.partial(Quiet, directory=folder)
            ) as upstream:
                thread = threading.Thread(target=upstream.serve_forever)
                thread.start()
                with Proxy(upstream.server_port) as proxy:
                    url = f"http://127.0.0.1:{proxy.port}/file"
                    command = ["curl", "--noproxy", "*", "--silent", "--show-error", "--fail", "--parallel", *[url] * 5]
                    done = subprocess.run(command, capture_output=True, check=True)
                self.assertEqual(len(done.stdout), 5 * len(content))
                command[-5:] = [url]
                upstream.shutdown()
                thread.join()


class Netcat(unittest.TestCase):
    def test_half_close(self):
        with target(answer_backwards) as port, Proxy(port) as proxy:
            command = ["nc", "-N", "127.0.0.1", str(proxy.port)]
            done = subprocess.run(command, input=b"stressed\n", capture_output=True, check=True)
            self.assertEqual(done.stdout, b"\ndesserts")


class Socat(unittest.TestCase):
    def test_half_close(self):
        data = random.randbytes(1_000_000)
        with target(answer_backwards) as port, Proxy(port) as proxy:
            command = ["socat", "-t", "600", "-", f"TCP:127.0.0.1:{proxy.port}"]
            done = subprocess.run(command, input=data, capture_output=True, check=True)
            self.assertEqual(done.stdout, data[::-1])


KINDS = {"sockets": Sockets, "curl": Curl, "nc": Netcat, "socat": Socat}

if __name__ == "__main__":
    PROGRAM, kind = sys.argv[1:]
    if kind != "sockets" and shutil.which(kind) is None:
        print(f"skipped: {kind} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + [KINDS[kind].__name__])
