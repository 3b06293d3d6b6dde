"""A server among the examples, as a process: started, its port read from the line that it prints, ended by SIGTERM."""

import re
import signal
import subprocess


class Server:
    """`command` prints "listening at ADDRESS:PORT" and ends with 0 after SIGTERM."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.is_told = False
        line = self.process.stdout.readline()
        self.port = int(re.match(r"listening at \S+:(\d+)", line)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminate()
        self.wait()

    def terminate(self):
        if not self.is_told:  # once: a second signal may come when it no longer expects one
            self.process.send_signal(signal.SIGTERM)
        self.is_told = True

    def wait(self):
        """Until it has ended."""
        self.process.stdout.close()
        status = self.process.wait()
        if status != 0:
            raise AssertionError(f"the server ended with {status}")
