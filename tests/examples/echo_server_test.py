#!/usr/bin/env python3
"""Tests the example echo_server: by plain sockets, or with the words `nc` or `socat` by these.

usage: echo_server_test.py PROGRAM sockets|nc|socat; exits with 77 where the tool is not installed.
"""

import random
import shutil
import socket
import subprocess
import sys
import threading
import unittest

from server import Server as ExampleServer

PROGRAM = ""


class Server(ExampleServer):
    def __init__(self):
        super().__init__([PROGRAM, "0"])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))


def exchange(connection, data):
    """Sends `data` and returns as much."""
    sender = threading.Thread(target=connection.sendall, args=(data,))
    sender.start()
    got = b""
    while len(got) < len(data) and (piece := connection.recv(65536)):
        got += piece
    sender.join()
    return got


class Sockets(unittest.TestCase):
    def test_many_at_once(self):
        with Server() as server:
            connections = [server.connect() for _ in range(50)]
            for n in (1, 64, 4096, 100_000):
                for c in connections:
                    data = random.randbytes(n)
                    self.assertEqual(exchange(c, data), data)
            for c in connections:
                c.close()

    def test_stops_when_the_open_connections_have_ended(self):
        with Server() as server:
            first, second = server.connect(), server.connect()
            self.assertEqual(exchange(first, b"one"), b"one")
            self.assertEqual(exchange(second, b"two"), b"two")
            server.terminate()
            with self.assertRaises(ConnectionError):  # sooner or later nobody listens there
                while True:
                    server.connect().close()
            self.assertIsNone(server.process.poll())
            data = random.randbytes(200_000)
            self.assertEqual(exchange(first, data), data)
            self.assertEqual(exchange(second, b"still here"), b"still here")
            first.shutdown(socket.SHUT_WR)
            self.assertEqual(first.recv(1), b"")
            second.close()
            first.close()
            server.wait()  # and not after ten seconds only, but that would be a test of the clock

    def test_cuts_off_who_stays(self):
        with Server() as server:
            stays = server.connect()
            self.assertEqual(exchange(stays, b"one"), b"one")
            server.terminate()
            self.assertEqual(stays.recv(1), b"")
            stays.close()

    def test_a_reset_concerns_nobody_else(self):
        with Server() as server:
            other = server.connect()
            for _ in range(20):
                c = server.connect()
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                c.sendall(b"x" * 100_000)
                c.close()
            self.assertEqual(exchange(other, b"here"), b"here")
            other.close()


class Netcat(unittest.TestCase):
    def test_echo(self):
        with Server() as server:
            command = ["nc", "-N", "127.0.0.1", str(server.port)]
            done = subprocess.run(command, input=b"hello\n" * 10_000, capture_output=True, check=True)
            self.assertEqual(done.stdout, b"hello\n" * 10_000)


class Socat(unittest.TestCase):
    def test_echo(self):
        data = random.randbytes(3_000_000)
        with Server() as server:
            # Waits for the server's end after its own: a second of silence would do otherwise.
            command = ["socat", "-t", "600", "-", f"TCP:127.0.0.1:{server.port}"]
            done = subprocess.run(command, input=data, capture_output=True, check=True)
            self.assertEqual(done.stdout, data)


KINDS = {"sockets": Sockets, "nc": Netcat, "socat": Socat}

if __name__ == "__main__":
    PROGRAM, kind = sys.argv[1:]
    if kind != "sockets" and shutil.which(kind) is None:
        print(f"skipped: {kind} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + [KINDS[kind].__name__])
