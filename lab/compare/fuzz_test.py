"""Manifests and results files may contain anything: they are read, or refused by an error that names the file. Mutations of
good ones, from a seed."""

import json
import random
import tempfile
import unittest
from pathlib import Path

from compare import manifest, store

PEERS = Path(__file__).resolve().parent.parent / "peers"
SEEDS = 400


def mutated(random_source, text):
    """`text` as bytes with a few changes that keep most of its structure."""
    lines = text.split("\n")
    for _ in range(random_source.randint(1, 4)):
        at = random_source.randrange(len(lines))
        line = lines[at]
        lines[at] = random_source.choice([
            "",
            line + line,
            line[: random_source.randint(0, len(line))],
            line.replace("=", ":"),
            line.partition("=")[0] + "= -1",
            line.partition("=")[0] + "= maybe",
            line.partition("=")[0] + "= 1e9",
            "  " + line,
            "[" + line + "]",
            line.replace('"', ""),
            random_source.choice(lines),
        ])
    raw = bytearray("\n".join(lines).encode())
    if raw and random_source.random() < 0.2:
        raw[random_source.randrange(len(raw))] = random_source.randrange(256)
    return bytes(raw)


class Mutations(unittest.TestCase):
    def attempt(self, name, raw, read, refusal):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(raw)
            try:
                read(path)
            except refusal as error:
                self.assertIn(str(path), str(error))
                return False
            return True

    def test_manifests_are_read_or_refused(self):
        good = [path.read_text(encoding="utf-8") for path in sorted(PEERS.glob("*/peer.ini"))]
        outcomes = set()
        for seed in range(SEEDS):
            source = random.Random(seed)
            raw = mutated(source, source.choice(good))
            with self.subTest(seed=seed):
                outcomes.add(self.attempt("peer.ini", raw, manifest.read_manifest, manifest.ManifestError))
        self.assertEqual(outcomes, {True, False})

    def test_results_are_read_or_refused(self):
        good = json.dumps(store.new_results("f", {}, [], {}, {"a": {"name": "a"}}), indent=1)
        outcomes = set()
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                outcomes.add(self.attempt("r.json", mutated(random.Random(seed), good), store.load, store.StoreError))
        self.assertEqual(outcomes, {True, False})

    def test_results_nested_without_end_are_refused(self):
        self.assertFalse(self.attempt("r.json", b"[" * 1_000_000, store.load, store.StoreError))


if __name__ == "__main__":
    unittest.main()
