#!/usr/bin/env python3
"""Tests the exchange from outside, with a PostgreSQL server of its own.

usage: exchange_test.py PROGRAM api|crash|crowd|browser; exits with 77 where PostgreSQL or the browser is not installed.

api      what the JSON says, and what comes by WebSocket
crash    kill -9 of the exchange, and of the database, under load: no acknowledged order is lost, and none is filled twice
crowd    1,000 WebSocket clients, one of which reads nothing
browser  Chromium shows the page, places an order and sees it filled; --picture FILE keeps a picture of it
"""

import base64
import http.client
import itertools
import json
import os
import re
import resource
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from postgres import Postgres, programs

PROGRAM = ""
PICTURE = None


class Exchange:
    """The program. It may be started again at the same port."""

    errors = None  # where its standard error goes

    def __init__(self, database, port=0):
        self.database, self.port = database, port
        self.start()

    def start(self):
        command = [PROGRAM, "--database", self.database.where, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.match(r"the exchange is open: http://127.0.0.1:(\d+)/", line)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        text = self.process.communicate()[0]
        assert self.process.returncode == 0, f"it ended with {self.process.returncode}: {text}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def ask(self, method, path, body=None):
        """(status, JSON or text)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            c.request(method, path, body=None if body is None else json.dumps(body))
            return answer(c.getresponse())
        finally:
            c.close()

    def place(self, trader, side, price, quantity, **more):
        status, order = self.ask("POST", "/api/orders", {"trader": trader, "side": side, "price": price, "quantity": quantity, **more})
        assert status == 201, (status, order)
        return order

    def metric(self, name):
        return float(re.search(rf"^exchange_{name} (\S+)$", self.ask("GET", "/metrics")[1], re.MULTILINE)[1])


def answer(response):
    text = response.read().decode()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text


class WebSocket:
    """A client that only receives."""

    def __init__(self, port, path="/api/feed", receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
            f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n".encode()
        )
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head

    def more(self):
        part = self.socket.recv(65536)
        if not part:
            raise EOFError
        self.data += part

    def frame(self):
        """(opcode, bytes) if a whole one is there, else None."""
        if len(self.data) < 2:
            return None
        size, at = self.data[1] & 127, 2
        if size == 126:
            if len(self.data) < 4:
                return None
            size, at = struct.unpack(">H", self.data[2:4])[0], 4
        elif size == 127:
            if len(self.data) < 10:
                return None
            size, at = struct.unpack(">Q", self.data[2:10])[0], 10
        if len(self.data) < at + size:
            return None
        opcode, body, self.data = self.data[0] & 15, self.data[at : at + size], self.data[at + size :]
        return opcode, body

    def next(self):
        while (f := self.frame()) is None:
            self.more()
        if f[0] == 8:
            raise EOFError
        return json.loads(f[1]) if f[0] == 1 else self.next()

    def until(self, wanted):
        """The first news for which wanted(news) is true."""
        while not wanted(news := self.next()):
            pass
        return news

    def close(self):
        self.socket.close()


class WithDatabase(unittest.TestCase):
    """One server for all cases, each of which begins with nothing in it."""

    @classmethod
    def setUpClass(cls):
        cls.db = Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.db.__exit__()

    def setUp(self):
        self.db.rows("drop schema public cascade")
        self.db.rows("create schema public")


class Api(WithDatabase):
    def test_orders(self):
        with Exchange(self.db) as x:
            a = x.place("ann", "sell", 101, 10, key="a1")
            self.assertEqual((a["remaining"], a["state"], a["trades"]), (10, "open", []))
            self.assertEqual(x.place("ann", "sell", 101, 10, key="a1"), a)  # the same one
            b = x.place("bob", "buy", 102, 4)
            self.assertEqual((b["remaining"], b["state"]), (0, "filled"))
            self.assertEqual([(t["price"], t["quantity"], t["sell_order"]) for t in b["trades"]], [(101, 4, a["id"])])
            self.assertEqual(x.ask("GET", "/api/book"), (200, {"bids": [], "asks": [[101, 6]]}))
            self.assertEqual(x.ask("GET", f"/api/orders/{a['id']}")[1]["remaining"], 6)
            self.assertEqual(x.ask("GET", "/api/trades")[1], b["trades"])
            # Older orders of the same price come first, better prices before them.
            c, d = x.place("cid", "sell", 101, 3), x.place("dan", "sell", 100, 1)
            e = x.place("eve", "buy", 101, 8)
            self.assertEqual([t["sell_order"] for t in e["trades"]], [d["id"], a["id"], c["id"]])
            self.assertEqual([t["price"] for t in e["trades"]], [100, 101, 101])
            # Withdrawn by its trader alone, once.
            self.assertEqual(x.ask("DELETE", f"/api/orders/{c['id']}?trader=ann")[0], 404)
            self.assertEqual(x.ask("DELETE", f"/api/orders/{c['id']}?trader=cid")[1]["state"], "withdrawn")
            self.assertEqual(x.ask("DELETE", f"/api/orders/{c['id']}?trader=cid")[0], 404)
            self.assertEqual(x.ask("GET", "/api/book"), (200, {"bids": [], "asks": []}))
            self.assertEqual(x.metric("orders_total"), 5)
            self.assertEqual(x.metric("trades_total"), 4)

    def test_bad_requests(self):
        with Exchange(self.db) as x:
            good = {"trader": "ann", "side": "buy", "price": 1, "quantity": 1}
            for name, values in {
                "trader": ["", 5, "x" * 41, "a\0b", None], "side": ["hold", 1], "price": [0, -1, 1.5, "1", 10**10, 10**30],
                "quantity": [0, -5, 10**10, True], "good_for_ms": [0, "soon"], "key": ["k" * 81, 7],
            }.items():  # fmt: skip
                for value in values:
                    status, said = x.ask("POST", "/api/orders", {**good, name: value})
                    self.assertEqual(status, 400, (name, value))
                    self.assertIn(name, said["error"])
            for body in ("", "[1]", "{", "null", "[" * 4000):
                c = http.client.HTTPConnection("127.0.0.1", x.port)
                c.request("POST", "/api/orders", body=body)
                self.assertEqual(c.getresponse().status, 400, body)
                c.close()
            self.assertEqual(x.ask("POST", "/api/orders", {**good, "trader": "x" * 5000})[0], 413)
            self.assertEqual(x.ask("GET", "/api/orders/1")[0], 404)
            self.assertIn(x.ask("GET", "/api/orders/one")[0], (404, 405))
            self.assertEqual(x.place("ann'; drop table orders; --", "buy", 1, 1)["id"], 1)

    def test_news(self):
        with Exchange(self.db) as x:
            w = WebSocket(x.port, "/api/feed?trader=ann")
            self.assertEqual(w.next()["book"], {"bids": [], "asks": []})
            a = x.place("ann", "buy", 50, 5)
            w.until(lambda n: n["book"]["bids"] == [[50, 5]])
            x.place("bob", "sell", 50, 2)
            news = w.until(lambda n: n["own"])
            self.assertEqual((news["own"][0]["order"]["id"], news["own"][0]["order"]["remaining"]), (a["id"], 3))
            self.assertEqual(news["own"][0]["fill"]["quantity"], 2)
            other = WebSocket(x.port)
            self.assertEqual([t["quantity"] for t in other.next()["trades"]], [2])
            w.close()
            x.stop()
            with self.assertRaises(EOFError):
                other.until(lambda n: n["own"])

    def test_time_is_over(self):
        with Exchange(self.db) as x:
            w = WebSocket(x.port, "/api/feed?trader=ann")
            w.next()  # the answer to the handshake comes before it is among the listeners, the first news after that
            a = x.place("ann", "buy", 50, 5, good_for_ms=1)
            b = x.place("ann", "buy", 40, 5, good_for_ms=86_400_000)
            notes = []

            def is_over(news):
                notes.extend((note["order"]["id"], note["order"]["state"]) for note in news["own"])
                return (a["id"], "withdrawn") in notes and news["book"]["bids"] == [[40, 5]]

            w.until(is_over)
            w.close()
            self.assertEqual(x.ask("GET", f"/api/orders/{b['id']}/state")[1]["state"], "open")

    def test_restart(self):
        with Exchange(self.db) as x:
            a = x.place("ann", "sell", 10, 5, key="k")
            x.stop()
            x.start()
            self.assertEqual(x.ask("GET", "/api/book")[1]["asks"], [[10, 5]])
            self.assertEqual(x.place("ann", "sell", 10, 5, key="k"), a)
            self.assertEqual(x.place("bob", "buy", 10, 5)["trades"][0]["sell_order"], a["id"])


class Trader(threading.Thread):
    """Places orders, one after the other, and keeps what was acknowledged. What was not is asked for again."""

    def __init__(self, port, number, enough):
        super().__init__()
        self.port, self.number, self.enough = port, number, enough
        self.done = []  # (key, request, receipt)
        self.repeated, self.failure = 0, None

    def run(self):
        try:
            connection = None
            for n in itertools.count():
                if self.enough.is_set():
                    return
                # Prices that cross most of the time.
                side = "buy" if (n + self.number) % 2 else "sell"
                request = {"trader": f"t{self.number}", "side": side, "price": 100 + (n * 7 + self.number) % 5,
                           "quantity": 1 + n % 7, "key": f"k{n}"}  # fmt: skip
                while True:
                    try:
                        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                        connection.request("POST", "/api/orders", body=json.dumps(request))
                        status, receipt = answer(connection.getresponse())
                    except (OSError, http.client.HTTPException):
                        connection = None
                        status = 0
                    if status == 201:
                        break
                    assert status in (0, 503), (status, receipt)
                    self.repeated += 1
                    time.sleep(0.01)  # not to spin while the exchange is away
                self.done.append((request, receipt))
        except BaseException as e:
            self.failure = e
            raise


def check(test, db, traders, unknown=frozenset()):
    """Compares what the clients were told with what the database has. `unknown`: (trader, key) of orders that may be there or not."""
    orders = {
        int(i): dict(trader=trader, key=key, buys=buys == "t", price=int(price), quantity=int(quantity), remaining=int(remaining),
                     withdrawn=withdrawn == "t")
        for i, trader, key, buys, price, quantity, remaining, withdrawn in db.rows(
            "select id, trader, key, buys, price, quantity, remaining, withdrawn from orders")
    }  # fmt: skip
    trades = {int(row[0]): tuple(map(int, row[1:])) for row in db.rows("select id, buy_order, sell_order, price, quantity from trades")}
    placed = [entry for t in traders for entry in t.done]
    # Nothing that was acknowledged is missing or other than it was; nothing is there twice, or was made up.
    test.assertEqual(len({(o["trader"], o["key"]) for o in orders.values()}), len(orders))
    for request, receipt in placed:
        o = orders[receipt["id"]]
        for name in ("trader", "key", "price", "quantity"):
            test.assertEqual(o[name], request[name])
        test.assertEqual(o["buys"], request["side"] == "buy")
        test.assertLessEqual(o["remaining"], receipt["remaining"])
        for t in receipt["trades"]:
            test.assertEqual(trades[t["id"]], (t["buy_order"], t["sell_order"], t["price"], t["quantity"]))
    test.assertEqual(len(placed), sum((o["trader"], o["key"]) not in unknown for o in orders.values()))
    # Each order has been filled by its trades, and by no more.
    filled = dict.fromkeys(orders, 0)
    for buyer, seller, price, quantity in trades.values():
        test.assertTrue(orders[buyer]["buys"] and not orders[seller]["buys"])
        test.assertTrue(orders[seller]["price"] <= price <= orders[buyer]["price"])
        filled[buyer] += quantity
        filled[seller] += quantity
    for i, o in orders.items():
        test.assertEqual(filled[i], o["quantity"] - o["remaining"], (i, o))
    # What waits does not cross.
    waiting = [o for o in orders.values() if o["remaining"] > 0 and not o["withdrawn"]]
    bids, asks = [o["price"] for o in waiting if o["buys"]], [o["price"] for o in waiting if not o["buys"]]
    test.assertTrue(not bids or not asks or max(bids) < min(asks))
    return len(placed), len(trades)


class Crash(WithDatabase):
    def under_load(self, disturb, rounds):
        """disturb(exchange, database) after each hundred or so of acknowledged orders."""
        with Exchange(self.db) as x:
            enough = threading.Event()
            traders = [Trader(x.port, n, enough) for n in range(8)]
            for t in traders:
                t.start()
            try:
                for n in range(rounds + 1):
                    least = sum(len(t.done) for t in traders) + 150
                    while sum(len(t.done) for t in traders) < least:
                        self.assertIsNone(next((t.failure for t in traders if t.failure), None))
                        time.sleep(0.005)
                    if n < rounds:
                        disturb(x, self.db)
            finally:
                enough.set()
                for t in traders:
                    t.join()
            x.stop()
            orders, trades = check(self, self.db, traders)
            self.assertGreater(trades, 100)
            print(f"{orders} orders, {trades} trades, {sum(t.repeated for t in traders)} requests repeated", file=sys.stderr)
            return sum(t.repeated for t in traders)

    def test_of_the_exchange(self):
        def crash(x, _):
            x.kill()
            x.start()

        self.assertGreater(self.under_load(crash, 5), 0)

    def test_of_the_database(self):
        def crash(_, db):
            db.stop()
            db.start()

        self.assertGreater(self.under_load(crash, 3), 0)

    def test_of_the_engine(self):
        def crash(_, db):
            db.rows("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")

        self.under_load(crash, 5)

    def test_a_stop_answers_what_is_under_way(self):
        def stop(x, _):
            x.stop()
            x.start()

        self.under_load(stop, 3)


class Crowd(WithDatabase):
    def test_a_thousand(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 1200:
            self.skipTest(f"only {hard} descriptors are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
        with Exchange(self.db) as x:
            deaf = WebSocket(x.port, receive_buffer=1)  # and never reads, until the end
            all_of_them = [WebSocket(x.port) for _ in range(999)]
            while x.metric("listeners") != 1000:  # the answer to the handshake comes first
                time.sleep(0.02)
            for n in range(100):
                x.place("ann", "sell", 100 + n % 3, 1)
                last = x.place("bob", "buy", 105, 1)["trades"][0]["id"]
            seen, selector = 0, selectors.DefaultSelector()
            for w in all_of_them:
                w.socket.setblocking(False)
                selector.register(w.socket, selectors.EVENT_READ, w)
            while seen < 999:
                for key, _ in selector.select():
                    w = key.data
                    w.more()
                    while f := w.frame():
                        self.assertEqual(f[0], 1)
                        if any(t["id"] == last for t in json.loads(f[1])["trades"]):
                            seen += 1
                            selector.unregister(w.socket)
                            break
            # It lives on as well, and learns of all that has happened.
            known = set()
            while last not in known:
                known |= {t["id"] for t in deaf.next()["trades"]}
            self.assertEqual(len(known), 100)
            for w in [deaf, *all_of_them]:
                w.close()
            x.place("ann", "sell", 100, 1)  # it goes on
            while x.metric("listeners") > 0:
                time.sleep(0.01)


class Driver:
    """A browser, by the WebDriver protocol (W3C)."""

    ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

    def __init__(self):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if m := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{m[1]}"
                break
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,800"]
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}})
        self.base += f"/session/{session['sessionId']}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, None if body is None else json.dumps(body).encode(), method=method)
        with urllib.request.urlopen(request) as r:
            return json.load(r)["value"]

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def element(self, css):
        return "/element/" + self.call("POST", "/element", {"using": "css selector", "value": css})[self.ELEMENT]

    def write(self, css, text):
        e = self.element(css)
        self.call("POST", e + "/clear", {})
        self.call("POST", e + "/value", {"text": text})

    def click(self, css):
        self.call("POST", self.element(css) + "/click", {})

    def until(self, script):
        """Waits until the script returns something that is true."""
        while not (value := self.run("return " + script)):
            time.sleep(0.02)
        return value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("DELETE", "")
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Browser(WithDatabase):
    def test_a_person_trades(self):
        with Exchange(self.db) as x, Driver() as d:
            for n in range(6):
                x.place("market maker", "sell", 103 + n, 20 + 15 * n)
                x.place("market maker", "buy", 98 - n, 10 + 20 * n)
            x.place("somebody", "buy", 103, 5)
            d.call("POST", "/url", {"url": f"http://127.0.0.1:{x.port}/"})
            d.until("document.getElementById('status').textContent == 'live'")
            d.until("document.querySelectorAll('#book tr').length == 13")
            self.assertEqual(d.run("return document.getElementById('last').textContent"), "last 103")
            d.write("[name=trader]", "mia")
            d.write("[name=price]", "100")
            d.write("[name=quantity]", "10")
            d.click("button[value=buy]")
            d.until("document.getElementById('answer').textContent.endsWith('waits in the book')")
            d.until("document.querySelector('#mine td:nth-child(3)').textContent == '10'")
            # Somebody else fills a part of it, and the page says so without being asked.
            x.place("somebody", "sell", 100, 4)
            d.until("document.querySelector('#mine td:nth-child(3)').textContent == '6'")
            d.until("document.getElementById('last').textContent == 'last 100'")
            d.write("[name=price]", "104")
            d.write("[name=quantity]", "25")
            d.click("button[value=buy]")
            d.until("document.getElementById('answer').textContent.endsWith('filled')")
            if PICTURE:
                with open(PICTURE, "wb") as f:
                    f.write(base64.b64decode(d.call("GET", "/screenshot")))
            # Withdrawn by a click.
            d.click("#mine button.small")
            d.until("[...document.querySelectorAll('#mine td:nth-child(4)')].some(c => c.textContent == 'withdrawn')")
            # It comes back by itself after the exchange was away.
            x.kill()
            d.until("document.getElementById('status').textContent.startsWith('not connected')")
            x.start()
            d.until("document.getElementById('status').textContent == 'live'")
            d.until("document.querySelectorAll('#book tr').length > 1")
            self.assertEqual(self.db.rows("select sum(quantity - remaining) from orders where trader = 'mia'"), [["29"]])


def main():
    global PROGRAM, PICTURE
    PROGRAM, what = sys.argv[1:3]
    if sys.argv[3:4] == ["--picture"]:
        PICTURE = sys.argv[4]
    if programs() is None:
        print("PostgreSQL is not installed (Debian: postgresql)")
        sys.exit(77)
    if what == "browser" and not (shutil.which("chromedriver") and shutil.which("chromium")):
        print("there is no chromedriver (Debian: chromium-driver)")
        sys.exit(77)
    cases = {"api": Api, "crash": Crash, "crowd": Crowd, "browser": Browser}[what]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(cases)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())


if __name__ == "__main__":
    main()
