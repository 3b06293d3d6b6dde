#!/usr/bin/env python3
"""Tests the example redis_server: by plain sockets, or with the words `redis-cli` or `redis-benchmark` by these.

usage: redis_server_test.py PROGRAM sockets|redis-cli|redis-benchmark; exits with 77 where the tool is not installed.
"""

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


def encoded(*words):
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


class Client:
    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        line = self.file.readline()
        if not line:
            return None
        kind, rest = line[:1], line[1:-2]
        if kind in b"+-":
            return line[:-2].decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        assert kind == b"*", line
        return [self.reply() for _ in range(int(rest))]

    def __call__(self, *words):
        self.send(encoded(*words))
        return self.reply()


class Sockets(unittest.TestCase):
    def test_commands(self):
        with Server() as server, Client(server) as c:
            self.assertEqual(c("PING"), "+PONG")
            self.assertEqual(c("ping", "there"), b"there")
            self.assertEqual(c("ECHO", "a b"), b"a b")
            self.assertEqual(c("GET", "k"), None)
            self.assertEqual(c("SET", "k", b"\0\r\n\xff"), "+OK")
            self.assertEqual(c("GET", "k"), b"\0\r\n\xff")
            self.assertEqual(c("DEL", "k", "k", "none"), 1)
            self.assertEqual(c("INCR", "n"), 1)
            self.assertEqual(c("INCR", "n"), 2)
            self.assertEqual(c("GET", "n"), b"2")
            self.assertEqual(c("SET", "n", "9223372036854775807"), "+OK")
            self.assertTrue(c("INCR", "n").startswith("-ERR value is not"))
            self.assertEqual(c("TTL", "none"), -2)
            self.assertEqual(c("TTL", "n"), -1)
            self.assertEqual(c("EXPIRE", "n", "1000"), 1)
            self.assertIn(c("TTL", "n"), range(900, 1001))
            self.assertEqual(c("SET", "n", "1"), "+OK")
            self.assertEqual(c("TTL", "n"), -1)  # a new value has a new life
            self.assertEqual(c("EXPIRE", "n", "0"), 1)
            self.assertEqual(c("GET", "n"), None)
            self.assertEqual(c("EXPIRE", "n", "1"), 0)
            self.assertEqual(c("SET", "m", "1", "EX", "9223372036854775807"), "+OK")
            self.assertEqual(c("SET", "m", "1", "PX", "1"), "+OK")
            while c("GET", "m") is not None:
                pass
            for wrong in (["SET", "a"], ["SET", "a", "b", "EX"], ["SET", "a", "b", "EX", "0"], ["NO"], ["EXPIRE", "a", "x"]):
                self.assertTrue(c(*wrong).startswith("-ERR "), wrong)
            self.assertEqual(c("no\r\nsuch"), "-ERR unknown command 'NO")
            self.assertEqual(c("QUIT"), "+OK")
            self.assertEqual(c.file.read(), b"")

    def test_requests_in_pieces_and_at_once(self):
        with Server() as server, Client(server) as c:
            one = encoded("SET", "key", "value") + encoded("GET", "key")
            for i in range(len(one)):
                c.send(one[i : i + 1])
            self.assertEqual([c.reply(), c.reply()], ["+OK", b"value"])
            # The reply to what is complete comes although the next request is not.
            c.send(encoded("PING") + b"*1\r\n$4\r\nPI")
            self.assertEqual(c.reply(), "+PONG")
            c.send(b"NG\r\n")
            self.assertEqual(c.reply(), "+PONG")
            c.send(b"".join(encoded("INCR", "n") for _ in range(10_000)))
            self.assertEqual([c.reply() for _ in range(10_000)], list(range(1, 10_001)))
            large = bytes(range(256)) * 4096
            self.assertEqual(c("SET", "large", large), "+OK")
            self.assertEqual(c("GET", "large"), large)
            c.send(b"set typed here\r\n\r\nGET  typed\r\n")
            self.assertEqual([c.reply(), c.reply()], ["+OK", b"here"])

    def test_what_is_no_request(self):
        for wrong in (b"*1\r\n:1\r\n", b"*x\r\n", b"*1\r\n$-\r\n", b"*1\r\n$99999999999\r\n", b"*1\r\n$1\r\nab\r\n", b"*99999\r\n"):
            with Server() as server, Client(server) as c, Client(server) as other:
                c.send(encoded("PING") + wrong)
                c.socket.shutdown(socket.SHUT_WR)
                self.assertEqual(c.reply(), "+PONG")
                self.assertTrue(c.reply().startswith("-ERR Protocol error: "), wrong)
                self.assertEqual(c.reply(), None)
                self.assertEqual(other("PING"), "+PONG")

    def test_publish(self):
        with Server() as server, Client(server) as listener, Client(server) as speaker:
            self.assertEqual(speaker("PUBLISH", "news", "nobody hears"), 0)
            self.assertEqual(listener("SUBSCRIBE", "news", "other"), [b"subscribe", b"news", 1])
            self.assertEqual(listener.reply(), [b"subscribe", b"other", 2])
            self.assertEqual(speaker("PUBLISH", "news", "one"), 1)
            self.assertEqual(speaker("PUBLISH", "other", "two"), 1)
            self.assertEqual(listener.reply(), [b"message", b"news", b"one"])
            self.assertEqual(listener.reply(), [b"message", b"other", b"two"])
            self.assertEqual(listener("PING"), [b"pong", b""])
            self.assertTrue(listener("GET", "k").startswith("-ERR Can't execute"))
            self.assertEqual(listener("UNSUBSCRIBE"), [b"unsubscribe", b"news", 1])
            self.assertEqual(listener.reply(), [b"unsubscribe", b"other", 0])
            self.assertEqual(listener("UNSUBSCRIBE"), [b"unsubscribe", None, 0])
            self.assertEqual(listener("GET", "k"), None)
            self.assertEqual(speaker("PUBLISH", "news", "three"), 0)

    def test_many_publishers_and_subscribers(self):
        with Server() as server:
            listeners = [Client(server) for _ in range(4)]
            for c in listeners:
                self.assertEqual(c("SUBSCRIBE", "t"), [b"subscribe", b"t", 1])

            def speak(who):
                with Client(server) as c:
                    for i in range(200):
                        assert c("PUBLISH", "t", f"{who} {i}") == 4

            speakers = [threading.Thread(target=speak, args=(who,)) for who in range(3)]
            for s in speakers:
                s.start()
            for c in listeners:
                next_of = [0, 0, 0]
                for _ in range(600):
                    kind, topic, text = c.reply()
                    who, i = map(int, text.split())
                    self.assertEqual((kind, topic, i), (b"message", b"t", next_of[who]))
                    next_of[who] += 1
            for s in speakers:
                s.join()
            for c in listeners:
                c.__exit__()

    def test_a_subscriber_that_does_not_read_is_cut_off(self):
        with Server() as server, Client(server) as idle, Client(server) as speaker:
            idle.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self.assertEqual(idle("SUBSCRIBE", "t"), [b"subscribe", b"t", 1])
            text = "x" * 100_000
            while speaker("PUBLISH", "t", text) == 1:
                pass
            self.assertEqual(speaker("PING"), "+PONG")


class RedisCli(unittest.TestCase):
    def cli(self, server, *words, typed=None):
        done = subprocess.run(
            ["redis-cli", "-p", str(server.port), *words], input=typed, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    def test_commands(self):
        with Server() as server:
            self.assertEqual(self.cli(server, "SET", "fruit", "plum"), ["OK"])
            self.assertEqual(self.cli(server, "GET", "fruit"), ["plum"])
            self.assertEqual(self.cli(server, "-r", "3", "INCR", "n"), ["1", "2", "3"])
            self.assertEqual(self.cli(server, typed="EXPIRE n 100\nDEL n\nTTL n\nPING\n"), ["1", "1", "-2", "PONG"])

    def test_subscribe(self):
        with Server() as server:
            command = ["stdbuf", "-oL", "redis-cli", "-p", str(server.port), "SUBSCRIBE", "news"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
                self.assertEqual([listener.stdout.readline().strip() for _ in range(3)], ["subscribe", "news", "1"])
                self.assertEqual(self.cli(server, "PUBLISH", "news", "ripe"), ["1"])
                self.assertEqual([listener.stdout.readline().strip() for _ in range(3)], ["message", "news", "ripe"])
                listener.terminate()


class RedisBenchmark(unittest.TestCase):
    def test_runs(self):
        with Server() as server:
            for pipeline in ("1", "16"):
                command = ["redis-benchmark", "-p", str(server.port), "-q", "-n", "2000", "-P", pipeline, "--csv"]
                command += ["-t", "ping,set,get,incr", "-r", "100"]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rows = [line.split(",")[0].strip('"') for line in done.stdout.splitlines() if line.startswith('"')]
                for name in ("PING_INLINE", "SET", "GET", "INCR"):
                    self.assertIn(name, rows)
                self.assertNotIn("rror", done.stdout + done.stderr)


KINDS = {"sockets": Sockets, "redis-cli": RedisCli, "redis-benchmark": RedisBenchmark}

if __name__ == "__main__":
    PROGRAM, kind = sys.argv[1:]
    if kind != "sockets" and shutil.which(kind) is None:
        print(f"skipped: {kind} is not installed (package redis-tools)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + [KINDS[kind].__name__])
