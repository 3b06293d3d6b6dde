#!/usr/bin/env python3
"""The cases of AutobahnTestsuite for WebSocket, with a server or a client of ramie at the other end.

The suite itself needs Python 2 and a library of its time. Here its cases run by Python 3 and the present Autobahn library (Debian:
python3-autobahn, python3-twisted): a case is a class that says what is sent, and what has to come back. Bytes were text in Python 2,
so between a case and the library each byte is a character of Latin-1. All that judges is the suite's own.

  autobahn_cases.py --suite FOLDER client URL   sends to an echo server
  autobahn_cases.py --suite FOLDER server       is a server: prints its port, and ends when /end is asked for; /cases says how many
                                                cases there are, /case/N runs one of them
Prints each case that did not pass, and a line of totals at the end. Exits with 1 if any failed, with 77 if something is missing.
The folder is that of `pip download --no-deps autobahntestsuite`, unpacked.
"""

import argparse
import binascii
import builtins
import re
import sys
import types
from pathlib import Path

try:
    from autobahn.twisted import websocket as library
    from autobahn.websocket import utf8validator
    from autobahn.websocket.protocol import WebSocketProtocol
    from twisted.internet import reactor
except ImportError as missing:
    print(f"missing: {missing} (Debian: python3-autobahn python3-twisted)")
    sys.exit(77)

AT_ONCE = 24  # cases that wait side by side
PASSED = {"OK", "NON-STRICT", "INFORMATIONAL"}


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


class Validator(utf8validator.Utf8Validator):
    def validate(self, text):
        return super().validate(as_bytes(text))


def load_cases(suite, messages):
    """The classes of all cases, by their names' numbers. Where a case sends 1,000 messages, `messages` are sent."""
    names = binascii_of_text(), types.ModuleType("pkg_resources")
    names[1].resource_filename = lambda _, path: str(suite / "autobahntestsuite" / path)
    utf8validator.Utf8Validator = Validator
    builtins.xrange = range
    sys.modules["binascii"], sys.modules["pkg_resources"] = names
    found = {}
    folder = suite / "autobahntestsuite" / "case"
    # Some import others by name.
    for path in sorted(folder.glob("case*.py"), key=lambda p: (p.stem != "case", p.stem)):
        if path.stem != "case9_9_1":  # never asked for by the suite itself
            load(path)
    for module in list(sys.modules.values()):
        if not getattr(module, "__file__", "").startswith(str(folder)):
            continue
        for value in vars(module).values():
            for case in value if isinstance(value, list) else [value]:
                if isinstance(case, type) and re.fullmatch(r"Case\d+_\d+(_\d+)*", case.__name__):
                    found[tuple(int(n) for n in case.__name__[4:].split("_"))] = case
    for case in found.values():
        if getattr(case, "COUNT", 0) > messages:
            case.COUNT = messages
    sys.modules["case"].Case.compare = lambda self, one, other: one == other
    return [found[key] for key in sorted(found)]


def binascii_of_text():
    module = types.ModuleType("binascii")
    vars(module).update(vars(binascii))
    module.b2a_hex = lambda text: binascii.b2a_hex(as_bytes(text)).decode()
    return module


class Finder:
    """For `from case6_3_1 import ...` inside cases."""

    folder = None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        file = cls.folder / f"{name}.py"
        if not file.is_file():
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, cls, origin=str(file))

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__file__ = module.__spec__.origin
        text = Path(module.__file__).read_text(encoding="latin-1")
        text = re.sub(r"^(\s*)print\b.*$", r"\1pass", text, flags=re.M)
        text = text.replace("(object, Case, )", "(Case, )").replace("/ self.p.autoFragmentSize", "// self.p.autoFragmentSize")
        text = re.sub(r"\b(request|accept)(No|Max)(Context|Window)(Takeover|Bits)\b", lambda m: "_".join(m.groups()).lower(), text)
        exec(compile(text, module.__file__, "exec"), vars(module))


def load(path):
    Finder.folder = path.parent
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    __import__(path.stem)


class Peer:
    """What a case calls, in the library's terms, for both roles."""

    runCase = None
    connectionWasOpen = False
    createWirelog = False
    txFrameStats = {}

    def begin_case(self, case):
        self.txFrameStats = {}
        self.runCase = case(self)
        # A case of compression reads files, and counts in bytes.
        self.speaks_bytes = hasattr(case, "TESTDATA")

    def came(self, payload):
        return payload if self.speaks_bytes else payload.decode("latin-1")

    def onOpen(self):
        self.connectionWasOpen = True
        if self.runCase is not None:
            self.runCase.onOpen()

    def onMessage(self, payload, isBinary):
        if self.runCase is not None:
            self.runCase.onMessage(self.came(payload), isBinary)

    def onPing(self, payload):
        if self.runCase is not None:
            self.runCase.onPing(self.came(payload))

    def onPong(self, payload):
        if self.runCase is not None:
            self.runCase.onPong(self.came(payload))

    def onClose(self, wasClean, code, reason):
        if self.runCase is not None:
            self.runCase.onClose(wasClean, code, reason)

    def end_case(self):
        """Once the connection is lost."""
        if self.runCase is None:
            return None
        self.runCase.onConnectionLost(self.failedByMe)
        return self.runCase

    def sendFrame(self, opcode, payload=b"", fin=True, rsv=0, mask=None, payload_len=None, chopsize=None, sync=False):
        if not payload:
            payload_len = None
        self.txFrameStats[opcode] = self.txFrameStats.get(opcode, 0) + 1
        super().sendFrame(opcode, as_bytes(payload), fin, rsv, mask, payload_len, chopsize, sync)

    def sendMessage(self, payload, isBinary=False, fragmentSize=None, sync=False, doNotCompress=False):
        if self.state == WebSocketProtocol.STATE_OPEN:
            super().sendMessage(as_bytes(payload), isBinary, fragmentSize, sync, doNotCompress)

    def sendMessageFrameData(self, payload, sync=False):
        return super().sendMessageFrameData(as_bytes(payload), sync)

    def beginMessage(self, isBinary=False, doNotCompress=False, opcode=1):
        super().beginMessage(isBinary or opcode == 2, doNotCompress)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, None if reasonUtf8 is None else as_bytes(reasonUtf8), isReply)

    def enableWirelog(self, _):
        pass

    def later(self, delay, function):
        reactor.callLater(delay, lambda: function() if self.state != WebSocketProtocol.STATE_CLOSED else None)

    def continueLater(self, delay, function, tag=None):
        self.later(delay, function)

    # What ends a case that has not ended by itself: late, since this machine may be busy.
    def killAfter(self, delay):
        self.later(delay * 30, self._fail_connection)

    def closeAfter(self, delay):
        self.later(min(delay * 5, 100), self.sendClose)


class Totals:
    def __init__(self):
        self.counts = {}
        self.bad = 0

    def add(self, name, case):
        behaviour, close = case.behavior, case.behaviorClose
        self.counts[behaviour] = self.counts.get(behaviour, 0) + 1
        fine = behaviour == "UNIMPLEMENTED" or (behaviour in PASSED and close in PASSED)
        if not fine:
            self.bad += 1
            print(f"{name}: {behaviour}, close {close}: {case.result} {case.resultClose}", flush=True)

    def print(self):
        print(f"{sum(self.counts.values())} cases, {self.bad} failed: " + ", ".join(f"{n} {k}" for k, n in sorted(self.counts.items())), flush=True)


def configure(factory, **more):
    # As the suite does: the closing handshake is made even with a peer that broke the rules.
    factory.setProtocolOptions(failByDrop=False, openHandshakeTimeout=60, closeHandshakeTimeout=60, **more)


def run_client(cases, url):
    totals, left = Totals(), list(reversed(cases))

    class Protocol(Peer, library.WebSocketClientProtocol):
        def connectionLost(self, reason):
            super().connectionLost(reason)
            totals.add(self.runCase.__class__.__name__, self.end_case())
            begin()

    class Factory(library.WebSocketClientFactory):
        noisy = False

        def buildProtocol(self, _):
            p = Protocol()
            p.factory = self
            p.begin_case(self.case)
            return p

        def clientConnectionFailed(self, _, reason):
            print(f"no connection: {reason.getErrorMessage()}")
            totals.bad += 1
            begin()

    running = [0]

    def begin(first=False):
        running[0] -= 0 if first else 1
        if left:
            factory = Factory(url)
            factory.case = left.pop()
            configure(factory, serverConnectionDropTimeout=60)
            running[0] += 1
            library.connectWS(factory)
        elif running[0] == 0 and reactor.running:
            reactor.stop()

    def start():
        for _ in range(AT_ONCE):
            if left:
                begin(first=True)

    reactor.callWhenRunning(start)
    reactor.run()
    totals.print()
    return totals.bad


def run_server(cases, _):
    totals = Totals()

    class Protocol(Peer, library.WebSocketServerProtocol):
        def onConnect(self, request):
            parts = request.path.strip("/").split("/")
            self.path = parts[0]
            if parts[0] == "case":
                self.begin_case(cases[int(parts[1])])

        def onOpen(self):
            super().onOpen()
            if self.path == "cases":
                self.sendMessage(str(len(cases)))
                self.sendClose()
            elif self.path == "end":
                self.sendClose()
                reactor.callLater(0.1, reactor.stop)

        def connectionLost(self, reason):
            super().connectionLost(reason)
            if self.runCase is not None:
                totals.add(self.runCase.__class__.__name__, self.end_case())

    class Factory(library.WebSocketServerFactory):
        noisy = False
        protocol = Protocol

    factory = Factory()
    configure(factory)
    port = reactor.listenTCP(0, factory, interface="127.0.0.1")
    print(port.getHost().port, flush=True)
    reactor.run()
    totals.print()
    return totals.bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--messages", type=int, default=5, help="at most, of a case that sends 1,000")
    parser.add_argument("--only", default="", help="a regular expression for names, as Case6_")
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("where", nargs="?", default="")
    args = parser.parse_args()
    if not (args.suite / "autobahntestsuite" / "case").is_dir():
        print(f"missing: {args.suite} (pip download --no-deps autobahntestsuite)")
        return 77
    cases = [c for c in load_cases(args.suite, args.messages) if re.match(args.only, c.__name__)]
    run = run_client if args.role == "client" else run_server
    return 1 if run(cases, args.where) else 0


if __name__ == "__main__":
    sys.exit(main())
