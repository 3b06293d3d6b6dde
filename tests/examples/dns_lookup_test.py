#!/usr/bin/env python3
"""Tests the example dns_lookup against name servers on the loopback.  usage: dns_lookup_test.py PROGRAM"""

import contextlib
import ipaddress
import random
import socket
import struct
import subprocess
import sys
import threading
import unittest

PROGRAM = ""
A, CNAME, AAAA = 1, 5, 28


class NameServer:
    """Answers each question with what `answer(question, from_tcp)` returns, a list of datagrams."""

    def __init__(self, answer):
        self.answer = answer
        while True:  # the same port by UDP and TCP
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.bind(("127.0.0.1", 0))
            try:
                self.tcp = socket.create_server(self.udp.getsockname())
                break
            except OSError:
                self.udp.close()
        self.name = "127.0.0.1:%d" % self.udp.getsockname()[1]
        self.questions = []
        self.threads = [threading.Thread(target=f) for f in (self.serve_udp, self.serve_tcp)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.udp.sendto(b"", self.udp.getsockname())
        self.tcp.shutdown(socket.SHUT_RDWR)
        for t in self.threads:
            t.join()
        self.udp.close()
        self.tcp.close()

    def serve_udp(self):
        while True:
            question, client = self.udp.recvfrom(2000)
            if not question:
                return
            self.questions.append(question)
            for reply in self.answer(question, False):
                self.udp.sendto(reply, client)

    def serve_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.tcp.accept()
                with connection:
                    question = connection.recv(2000)[2:]
                    for reply in self.answer(question, True):
                        connection.sendall(struct.pack(">H", len(reply)) + reply)


def name_and_type(question):
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    return ".".join(labels), struct.unpack_from(">H", question, at + 1)[0]


def reply_to(question, records=(), code=0, flags=0x8180):
    """`records`: (type, data), all of the name that was asked for."""
    body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data for kind, data in records)
    return question[:2] + struct.pack(">HHHHH", flags | code, 1, len(records), 0, 0) + question[12:] + body


def address(text):
    return (A if "." in text else AAAA), ipaddress.ip_address(text).packed


def book(**names):
    def answer(question, _):
        name, kind = name_and_type(question)
        if name not in names:
            return [reply_to(question, code=3)]
        return [reply_to(question, [r for r in map(address, names[name]) if r[0] == kind])]

    return answer


def look_up(name, *servers):
    done = subprocess.run([PROGRAM, name, *(s.name for s in servers)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split(), done.stderr


class DnsLookup(unittest.TestCase):
    def test_both_kinds(self):
        with NameServer(book(here=["192.0.2.1", "192.0.2.2", "2001:db8::1"])) as s:
            self.assertEqual(look_up("here", s), (0, ["192.0.2.1", "192.0.2.2", "2001:db8::1"], ""))
            self.assertEqual(look_up("here.", s)[1][0], "192.0.2.1")
            self.assertEqual(look_up("nowhere", s), (1, [], "nowhere has no address\n"))
            for q in s.questions:
                self.assertEqual(q[2:12], b"\1\0\0\1\0\0\0\0\0\0")

    def test_another_name_stands_for_it(self):
        def answer(question, _):
            kind = name_and_type(question)[1]
            return [reply_to(question, [(CNAME, b"\5other\0"), (TXT, b"\2hi"), address("192.0.2.3")] if kind == A else [])]

        TXT = 16
        with NameServer(answer) as s:
            self.assertEqual(look_up("alias", s)[1], ["192.0.2.3"])

    def test_questions_are_asked_again(self):
        asked = []

        def answer(question, _):
            asked.append(name_and_type(question))
            return [reply_to(question, [address("192.0.2.4")])] if asked.count(asked[-1]) > 1 else []

        with NameServer(answer) as s:
            self.assertEqual(look_up("again", s)[1][0], "192.0.2.4")
            self.assertGreaterEqual(len({q[:2] for q in s.questions}), 2)  # each with a number of its own

    def test_another_server_is_asked(self):
        silent = NameServer(lambda *_: [])
        broken = NameServer(lambda q, _: [reply_to(q, code=2)])
        garbage = NameServer(lambda q, _: [b"", b"x", q, random.randbytes(100), reply_to(q)[:20]])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
            gone.bind(("127.0.0.1", 0))
            nobody = type("Nobody", (), {"name": "127.0.0.1:%d" % gone.getsockname()[1]})
        with silent, broken, garbage, NameServer(book(there=["192.0.2.5"])) as good:
            self.assertEqual(look_up("there", nobody, broken, good)[:2], (0, ["192.0.2.5"]))
            self.assertEqual(look_up("there", silent, good)[:2], (0, ["192.0.2.5"]))
            self.assertEqual(look_up("there", garbage, good)[:2], (0, ["192.0.2.5"]))
            code, found, why = look_up("there", broken)
            self.assertEqual((code, found), (1, []))
            self.assertIn("answers with error 2", why)
            self.assertIn("refused", look_up("there", nobody)[2])

    def test_false_answers_are_passed_over(self):
        def answer(question, _):
            wrong_number = bytes([question[0] ^ 1]) + question[1:]
            other_name = question[:13] + bytes([question[13] ^ 1]) + question[14:]
            false = [reply_to(q, [address("192.0.2.66")]) for q in (wrong_number, other_name)]
            return [*false, reply_to(question, [address("192.0.2.6")])]

        with NameServer(answer) as s:
            self.assertEqual(set(look_up("mine", s)[1]), {"192.0.2.6"})

    def test_long_answers_come_by_tcp(self):
        many = [f"192.0.{i // 250}.{i % 250}" for i in range(1000)]

        def answer(question, by_tcp):
            if name_and_type(question)[1] == AAAA:
                return [reply_to(question)]
            return [reply_to(question, map_of(many)) if by_tcp else reply_to(question, flags=0x8380)]

        def map_of(addresses):
            return [address(a) for a in addresses]

        with NameServer(answer) as s:
            self.assertEqual(look_up("many", s)[1], many)

    def test_what_is_no_name(self):
        with NameServer(book()) as s:
            for wrong in ("", ".", "a..b", "x" * 64, "x." * 127 + "x"):
                self.assertEqual(look_up(wrong, s)[:2], (1, []), wrong)
            self.assertEqual(s.questions, [])

    def test_bad_answers_of_every_length(self):
        """Whatever comes, it goes on to the next server or waits for a better answer."""
        whole = []

        def answer(question, _):
            good = reply_to(question, [address("192.0.2.7")] * 2)
            whole.append(good)
            torn = [good[:n] for n in range(len(good))]
            spoilt = [good[:12] + random.randbytes(len(good) - 12) for _ in range(50)]
            return [*torn, *spoilt, good]

        with NameServer(answer) as s:
            self.assertEqual(set(look_up("torn", s)[1]), {"192.0.2.7"})


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
