"""Assumptions about functions whose frames are unknown."""

import re
from pathlib import Path

OWN = Path(__file__).with_name("known.txt")
UNKNOWN_BYTES = 4096  # a function in no table: most that were measured need less, see known.txt
INDIRECT_BYTES = 2048  # a call of an unknown function; picked out of thin air
# The first call of a function in a shared library resolves it. Measured 2.7 KiB above what the function itself needed (x86-64
# with AVX-512: the loader keeps all vector registers meanwhile).
BINDING_BYTES = 3072


class KnownError(Exception):
    """A table has an invalid line."""


def read_table(path):
    """[(bytes, pattern)]. Throws KnownError."""
    table = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise KnownError(str(error)) from None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        size, _, pattern = line.partition(" ")
        try:
            table.append((int(size), re.compile(pattern.strip())))
        except (ValueError, re.error) as error:
            raise KnownError(f"{path}:{number}: {error}") from None
        if not pattern.strip():
            raise KnownError(f"{path}:{number}: names no function")
    return table


class Known:
    def __init__(self, tables, unknown_bytes=UNKNOWN_BYTES, indirect_bytes=INDIRECT_BYTES, binding_bytes=BINDING_BYTES):
        self.lines = [line for table in tables for line in table]
        self.unknown_bytes, self.indirect_bytes, self.binding_bytes = unknown_bytes, indirect_bytes, binding_bytes

    def bytes_of(self, symbol):
        """(bytes, is it in a table)"""
        for size, pattern in self.lines:
            if pattern.fullmatch(symbol):
                return max(size, self.binding_bytes), True
        return max(self.unknown_bytes, self.binding_bytes), False
