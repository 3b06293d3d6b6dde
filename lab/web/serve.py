#!/usr/bin/env python3
"""Becomes a server of experiment 7, in the way that ramie-lab's load wants: on a port that is free, with the line "port NUMBER" once it
listens (lab/load/measure.hpp).

usage: serve.py nginx|COMMAND... [--style=NAME] [--workers=N] [--tls]

COMMAND gets the port, the number of workers, the file of /json, and with --tls the files of certificate and key. All servers get the
same ones, which are made in build/web.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "web"
NGINX = """
worker_processes {workers}; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.error; master_process {master};
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000000; sendfile on; default_type text/plain; etag off;
  types {{ application/json json; }}
  client_body_temp_path {folder}/nginx.body; proxy_temp_path {folder}/nginx.proxy; fastcgi_temp_path {folder}/nginx.fastcgi;
  uwsgi_temp_path {folder}/nginx.uwsgi; scgi_temp_path {folder}/nginx.scgi;
  open_file_cache max=100;
  server {{
    listen 127.0.0.1:{port} {tls};
    {certificate}
    location = / {{ return 200 "hello\\n"; }}
    location = /hello {{ root {build}/www; }}
    location = /json {{ root {build}/www; default_type application/json; }}
  }}
}}
"""


def make_files():
    """/json, 10 KB, and a certificate; those that are there stay."""
    (BUILD / "www").mkdir(parents=True, exist_ok=True)
    for name, text in (("json", json.dumps([{"id": i, "name": f"item number {i}", "price": i * 7 % 1000, "tags": ["one", "two"]} for i in range(140)])),
                       ("hello", "hello\n")):  # fmt: skip
        path = BUILD / "www" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    if not (BUILD / "key.pem").exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650",
                        "-subj", "/CN=localhost", "-keyout", BUILD / "key.pem", "-out", BUILD / "cert.pem"], check=True, capture_output=True)  # fmt: skip


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def nginx(port, workers, encrypted):
    """Its command. One worker without a master: a process that can be measured."""
    folder = BUILD / f"nginx.{port}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    certificate = f"ssl_certificate {BUILD}/cert.pem; ssl_certificate_key {BUILD}/key.pem; ssl_protocols TLSv1.3;" if encrypted else ""
    (folder / "nginx.conf").write_text(NGINX.format(
        workers=workers, master="off" if workers == 1 else "on", folder=folder, build=BUILD, port=port,
        tls="ssl http2" if encrypted else "", certificate=certificate))  # fmt: skip
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf"]


def command_for(command, port, workers, encrypted):
    make_files()
    if command == ["nginx"]:
        return nginx(port, workers, encrypted)
    return [*command, port, workers, BUILD / "www" / "json", *([BUILD / "cert.pem", BUILD / "key.pem"] if encrypted else [])]


def tell_when_it_listens(port, server):
    """In a process of its own, which is not the server's child."""
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:
        while Path(f"/proc/{server}").exists():
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                os.write(1, f"port {port}\n".encode())
                break
            except OSError:
                time.sleep(0.02)
    os._exit(0)


def main():
    command = [word for word in sys.argv[1:] if not word.startswith("--")]
    options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    if not command:
        sys.exit(__doc__)
    port = free_port()
    words = [str(word) for word in command_for(command, port, int(options.get("workers", 1)), "tls" in options)]
    tell_when_it_listens(port, os.getpid())
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
