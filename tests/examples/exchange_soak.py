#!/usr/bin/env python3
"""The exchange under random mishaps for as long as it is wanted, with a PostgreSQL server of its own. At the end a checker compares what
the clients wrote into their logs with the tables.

usage: exchange_soak.py PROGRAM [--minutes N] [--seed N]

Clients are processes. Each writes into its log what it is about to send, and each answer; now and then one of them is killed by SIGKILL
in whatever it does, and another comes in its place. Some close a connection before the answer and ask again. Listeners by WebSocket
come, vanish with a reset, or never read. The exchange is killed, or restarted by SIGTERM; so is the database, and its connections are
cut. Exits with 77 where PostgreSQL is not installed.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

import exchange_test
from exchange_test import Exchange, WebSocket, answer, check
from postgres import Postgres, programs

CLIENTS = 8
LISTENERS = 30
STUCK_S = 120  # without an answer to anybody: no client waits so long for a restart of anything


# ---- the client, a process ------------------------------------------------------------------------------------------------------


def client(port, name, path):
    """Trades until SIGTERM; then it finishes what it has begun."""
    enough = []
    signal.signal(signal.SIGTERM, lambda *_: enough.append(True))
    dice = random.Random(name)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(kind, value):
        os.write(log, f"{kind} {json.dumps(value)}\n".encode())

    def ask(method, path, body=None):
        """Again and again, until there is an answer that says something."""
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                with contextlib.closing(c):
                    c.request(method, path, body=body)
                    if dice.random() < 0.02:
                        continue  # gone before the answer
                    status, said = answer(c.getresponse())
                    if status != 503:
                        return status, said
            time.sleep(0.01)  # not to spin while the exchange is away

    open_orders = []
    n = 0
    while not enough:
        n += 1
        request = {"trader": name, "side": dice.choice(["buy", "sell"]), "price": 100 + dice.randrange(5),
                   "quantity": 1 + dice.randrange(7), "key": f"k{n}"}  # fmt: skip
        note("S", request)
        status, receipt = ask("POST", "/api/orders", json.dumps(request))
        assert status == 201, (status, receipt)
        note("A", receipt)
        if receipt["remaining"] > 0:
            open_orders.append(receipt["id"])
        if open_orders and dice.random() < 0.3:
            number = open_orders.pop(dice.randrange(len(open_orders)))
            status, said = ask("DELETE", f"/api/orders/{number}?trader={name}")
            # 404: it was filled meanwhile, or withdrawn by an attempt whose answer did not come.
            assert status in (200, 404), (status, said)
            if status == 200:
                note("W", number)


# ---- what becomes of the clients and all the rest -------------------------------------------------------------------------------


class Client:
    def __init__(self, port, name, folder):
        self.path, self.seen, self.acknowledged = folder / name, 0, 0
        self.process = subprocess.Popen([sys.executable, __file__, "client", str(port), name, self.path])

    def progress(self):
        """Answers in its log."""
        if self.path.exists():
            with self.path.open("rb") as f:
                f.seek(self.seen)
                new = f.read()
            self.seen += len(new)
            self.acknowledged += new.count(b"\nA ")
        return self.acknowledged

    def read(self, killed):
        """(done as `check` has it, keys that may or may not have been carried out, numbers of withdrawn orders)"""
        done, open_ones, withdrawn = [], {}, []
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        assert killed or lines[-1] == b""
        request = None
        for line in lines[:-1]:
            kind, value = line[:1], json.loads(line[2:])
            if kind == b"S":
                request = value
                open_ones[request["key"]] = request
            elif kind == b"A":
                done.append((request, value))
                del open_ones[request["key"]]
            else:
                withdrawn.append(value)
        assert killed or not open_ones, open_ones
        return done, {(r["trader"], key) for key, r in open_ones.items()}, withdrawn


class Soak:
    def __init__(self, database, exchange, dice, folder):
        self.db, self.x, self.dice, self.folder = database, exchange, dice, folder
        self.names = (f"c{n}" for n in range(10**9))
        self.clients = [self.new_client() for _ in range(CLIENTS)]
        self.dead, self.listeners = [], []
        self.counts = dict.fromkeys(("clients killed", "exchange killed", "exchange restarted", "database restarted", "connections cut", "listeners"), 0)

    def new_client(self):
        return Client(self.x.port, next(self.names), self.folder)

    def acknowledged(self):
        return sum(c.progress() for c in self.clients + self.dead)

    def wait_for(self, more):
        least, since, last = self.acknowledged() + more, time.monotonic(), 0
        while (now := self.acknowledged()) < least:
            for c in self.clients:
                assert c.process.poll() is None, f"a client has failed: {c.path}"
            if now > last:
                last, since = now, time.monotonic()
            assert time.monotonic() - since < STUCK_S, f"no client had an answer for {STUCK_S} s"
            time.sleep(0.01)

    # The mishaps.

    def kill_client(self):
        self.counts["clients killed"] += 1
        at = self.dice.randrange(CLIENTS)
        c = self.clients[at]
        c.process.kill()
        c.process.wait()
        self.dead.append(c)
        self.clients[at] = self.new_client()

    def kill_exchange(self):
        self.counts["exchange killed"] += 1
        self.x.kill()
        self.x.start()

    def restart_exchange(self):
        self.counts["exchange restarted"] += 1
        self.x.stop()
        self.x.start()

    def restart_database(self):
        self.counts["database restarted"] += 1
        self.db.stop()
        time.sleep(self.dice.random())
        self.db.start()

    def cut_connections(self):
        self.counts["connections cut"] += 1
        self.db.rows("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")

    def change_listeners(self):
        self.counts["listeners"] += 1
        self.dice.shuffle(self.listeners)
        for w in self.listeners[LISTENERS // 2 :]:
            if self.dice.random() < 0.5:
                w.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            w.close()
        del self.listeners[LISTENERS // 2 :]
        while len(self.listeners) < LISTENERS:
            self.listeners.append(WebSocket(self.x.port, f"/api/feed?trader=c{self.dice.randrange(20)}", receive_buffer=1))

    def run(self, minutes):
        mishaps = [self.kill_client] * 6 + [self.change_listeners] * 4 + [self.cut_connections] * 2
        mishaps += [self.kill_exchange, self.restart_exchange, self.restart_database]
        end, said = time.monotonic() + 60 * minutes, time.monotonic()
        while time.monotonic() < end:
            self.wait_for(self.dice.randrange(100))
            self.dice.choice(mishaps)()
            if time.monotonic() - said > 20:
                said = time.monotonic()
                print(f"{self.acknowledged()} orders acknowledged; {self.counts}; {self.memory_kb()} KB", flush=True)
        self.wait_for(1)
        for c in self.clients:
            c.process.terminate()
        for c in self.clients:
            assert c.process.wait() == 0, c.path
        for w in self.listeners:
            w.close()
        self.x.stop()

    def memory_kb(self):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.x.process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    def judge(self):
        logs = [c.read(False) for c in self.clients] + [c.read(True) for c in self.dead]
        traders = [types.SimpleNamespace(done=done) for done, _, _ in logs]
        unknown = set().union(*(keys for _, keys, _ in logs))
        orders, trades = check(unittest.TestCase(), self.db, traders, unknown)
        gone = {int(row[0]) for row in self.db.rows("select id from orders where withdrawn")}
        withdrawn = [number for _, _, numbers in logs for number in numbers]
        assert gone.issuperset(withdrawn), sorted(set(withdrawn) - gone)
        print(f"{orders} orders acknowledged, {len(unknown)} left open by killed clients, {trades} trades, {len(withdrawn)} withdrawn: all as the logs have it")
        print(", ".join(f"{what}: {n}" for what, n in self.counts.items()))


def main():
    if sys.argv[1:2] == ["client"]:
        return client(int(sys.argv[2]), *sys.argv[3:5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    args = parser.parse_args()
    if programs() is None:
        print("PostgreSQL is not installed (Debian: postgresql)")
        sys.exit(77)
    exchange_test.PROGRAM = args.program
    print(f"seed {args.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="ramie_soak_"))
    Exchange.errors = (folder / "exchange.log").open("ab")  # its supervisor has much to say
    with Postgres() as db, Exchange(db) as x:
        soak = Soak(db, x, random.Random(args.seed), folder)
        try:
            soak.run(args.minutes)
        finally:
            for c in soak.clients:
                c.process.kill()
                c.process.wait()
        soak.judge()
    for f in folder.iterdir():
        f.unlink()
    folder.rmdir()  # after a failure the logs stay


if __name__ == "__main__":
    main()
