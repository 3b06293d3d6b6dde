"""A PostgreSQL server for a test: in a scratch folder, on a local socket, as a user without rights."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path


def programs():
    """The folder of initdb and the like; None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    path = found[-1] if found else shutil.which("initdb")
    return Path(path).parent if path and shutil.which("psql") else None


class Postgres:
    def __init__(self):
        self.bin = programs()
        self.folder = tempfile.mkdtemp(prefix="ramie_pg_")
        self.user = None
        if os.geteuid() == 0:  # the server refuses to run as root
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self.folder, self.user)
        self.where = f"host={self.folder} user=market dbname=postgres"
        initdb = [self.bin / "initdb", "-D", self.data, "-U", "market", "--auth=trust", "--no-sync", "--no-instructions"]
        subprocess.run(self.as_another([*initdb, "--locale=C", "--encoding=UTF8"]), check=True, stdout=subprocess.DEVNULL)
        self.start()

    @property
    def data(self):
        return f"{self.folder}/data"

    def as_another(self, command):
        return (["setpriv", "--reuid", self.user, "--clear-groups", "--"] if self.user else []) + [str(word) for word in command]

    def start(self):
        settings = ["listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=60"]
        options = [word for setting in settings for word in ("-c", setting)]
        self.process = subprocess.Popen(
            self.as_another([self.bin / "postgres", "-D", self.data, "-k", self.folder, *options]),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while subprocess.run([self.bin / "pg_isready", "--quiet", "-h", self.folder], check=False).returncode != 0:
            if self.process.poll() is not None:
                raise AssertionError("the database does not start")

    def stop(self):
        """At once, as by a crash."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def rows(self, sql):
        """Of a query, as lists of texts."""
        done = subprocess.run(["psql", "-XAtq", "-F", "\t", "-d", self.where, "-c", sql], check=True, capture_output=True, text=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
