#!/usr/bin/env python3
"""Experiment 7, memory: what a connection costs that has had one request and is kept, plain and over TLS.

    ./run build release && ./run peers nginx go node && python3 lab/web/idle.py
    python3 lab/web/idle.py --servers ramie,nginx --connections 5000

The rest of experiment 7 is `./run compare --workload http`. Each server has one worker. Peers that are not built are left out.
"""

import argparse
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import serve

PEERS = serve.ROOT / "build" / "peers"
SERVERS = {
    "ramie": ([serve.ROOT / "build" / "release" / "bin" / "ramie-web"], True),
    "nginx": (["nginx"], True),
    "go": ([PEERS / "go" / "go_hello"], True),
    "axum": ([PEERS / "axum" / "release" / "hello_axum"], False),
    "beast": ([PEERS / "beast" / "beast"], False),
    "node": (["node", serve.ROOT / "lab" / "web" / "servers" / "hello.js"], True),
}


class Server:
    def __init__(self, command, encrypted):
        words = [sys.executable, Path(__file__).parent / "serve.py", *command, *(["--tls"] if encrypted else [])]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        line = next(iter(self.process.stdout), "")
        if not line.startswith("port "):
            raise RuntimeError(f"{command[0]} does not listen")
        self.port = int(line.split()[1])

    def memory(self):
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss: +(\d+)", text, re.M)[1]) * 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def idle_memory(server, encrypted, count):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    open_ones = []

    def connect():
        s = socket.create_connection(("127.0.0.1", server.port))
        if encrypted:
            s = context.wrap_socket(s)
        s.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        got = b""
        while not got.endswith(b"hello\n"):
            got += s.recv(4096)
        open_ones.append(s)

    for _ in range(50):
        connect()
    before = server.memory()
    for _ in range(count):
        connect()
    return (server.memory() - before) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--connections", type=int, default=500)
    args = parser.parse_args()
    for encrypted in (False, True):
        for name in args.servers.split(","):
            command, speaks_tls = SERVERS[name]
            if encrypted and not speaks_tls:
                continue
            if isinstance(command[0], Path) and not command[0].exists():
                print(f"left out: {name}, which is not built", file=sys.stderr)
                continue
            with Server(command, encrypted) as server:
                print(f"{'tls' if encrypted else 'plain':6} {name:6} {idle_memory(server, encrypted, args.connections):9.0f} bytes a connection", flush=True)


if __name__ == "__main__":
    main()
