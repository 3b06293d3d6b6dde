"""The results file: every measurement, run by run, and the machine."""

import json
import os
import time
from pathlib import Path

FORMAT = 1


class StoreError(Exception):
    """A results file that cannot be read or written."""


def new_results(fingerprint, choice, cases, machine, peers):
    return {
        "program": "ramie compare",
        "format": FORMAT,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "finished": None,
        "fingerprint": fingerprint,
        "choice": choice,
        "machine": machine,
        "peers": peers,
        "cases": cases,
        "samples": [],
    }


def load(path):
    """Throws StoreError."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path}: {error}") from None
    if not isinstance(results, dict) or results.get("program") != "ramie compare":
        raise StoreError(f"{path}: is no results file of ./run compare")
    if results.get("format") != FORMAT:
        raise StoreError(f"{path}: has format {results.get('format')}; this program knows {FORMAT}")
    return results


def save(path, results):
    """Atomically: an interruption leaves the old file. Throws StoreError."""
    path = Path(path)
    beside = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=0)
            file.write("\n")
        os.replace(beside, path)
    except OSError as error:
        raise StoreError(f"{path}: {error}") from None


def unfinished(folder, fingerprint):
    """The newest results file of an interrupted run of the same plan, or None."""
    for path in sorted(Path(folder).glob("*.json"), reverse=True):
        try:
            results = load(path)
        except StoreError:
            continue
        if results["fingerprint"] == fingerprint and not results["finished"]:
            return path
    return None


def newest(folder):
    """The newest results file, or None."""
    for path in sorted(Path(folder).glob("*.json"), reverse=True):
        try:
            load(path)
            return path
        except StoreError:
            continue
    return None


def samples_of(results, group_key):
    """{contestant: samples} of a group, in the order in which they first ran."""
    found = {}
    for sample in results["samples"]:
        if sample["group"] == group_key:
            found.setdefault(sample["contestant"], []).append(sample)
    return found
