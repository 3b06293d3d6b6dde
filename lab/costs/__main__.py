"""Measures what each operation of ramie costs on this machine: some three minutes.

  ./run costs                 measures, and prints the table
  ./run costs --write         also writes it into docs/costs.md, between the marks there
  ./run costs --from FILE     uses an earlier measurement (build/costs/<time>.json)
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from compare import store
from compare.__main__ import LAB, revision
from costs import table

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS = 15
# Document, name of the marks, the text between them.
PLACES = [("docs/costs.md", "costs", table.costs_text), ("docs/costs.md", "experiments", table.experiments_text)]


class CostsError(Exception):
    """What cannot be measured or written."""


def measure(lab, workload, styles, quick, runs):
    """The results of the lab. Throws CostsError."""
    options = table.SIZES[workload][1 if quick else 0]
    workers = "1,all" if any(row.workload == workload for row in table.EXPERIMENTS) else None
    command = [str(lab), workload, "--json", "--style", ",".join(styles), "--runs", str(table.RUNS.get(workload, runs))]
    for name, value in options.items():
        command += [f"--{name}"] if name == "messages-only" else [f"--{name}", str(value)]
    if workers:
        command += ["--workers", "1" if (os.cpu_count() or 1) == 1 else f"1,{len(os.sched_getaffinity(0))}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise CostsError(f"{' '.join(command)} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_all(options):
    results = []
    for workload, styles in table.styles().items():
        results += measure(options.lab, workload, styles, options.quick, options.runs)
    for result in results:
        if not result.get("ok"):
            print(f"./run costs: {result['workload']} {result['style']}: {result.get('error', 'wrong')}", file=sys.stderr)
    words = ["./run costs"] + (["--quick"] if options.quick else []) + ([f"--runs {options.runs}"] if options.runs != RUNS else [])
    return {
        "program": "ramie costs",
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": " ".join(words),
        "revision": revision(),
        "runs": options.runs,
        "machine": results[0]["machine"],
        "results": results,
    }


def marked(text, name, filling, path):
    """`text` with `filling` between the marks of that name. Throws CostsError."""
    begin, end = f"<!-- {name}: by ./run costs -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise CostsError(f"{path}: has not one line '{begin.strip()}' and after it one '{end}'")
    return text[: text.index(begin) + len(begin)] + filling + text[text.index(end) :]


def write_documents(document, root):
    for name, mark, text_of in PLACES:
        path = root / name
        filling = f"{text_of(document['results'])}\n{table.source_text(document)}\n"
        path.write_text(marked(path.read_text(encoding="utf-8"), mark, filling, path), encoding="utf-8")
        print(f"./run costs: wrote the {mark} into {name}", file=sys.stderr)


def load(path):
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CostsError(f"{path}: {error}") from None
    if not isinstance(document, dict) or document.get("program") != "ramie costs":
        raise CostsError(f"{path}: is not a results file of ./run costs")
    return document


def main():
    parser = argparse.ArgumentParser(prog="./run costs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also write docs/costs.md")
    parser.add_argument("--from", dest="file", help="use an earlier results file instead of measuring")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each is measured ({RUNS})")
    parser.add_argument("--quick", action="store_true", help="small sizes, some seconds: to try this program")
    parser.add_argument("--lab", type=Path, default=LAB, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.file:
            document = load(options.file)
        else:
            document = measure_all(options)
            path = ROOT / "build" / "costs" / time.strftime("%Y-%m-%d_%H-%M-%S.json")
            store.save(path, document)
            print(f"./run costs: results: {path.relative_to(ROOT)}", file=sys.stderr)
        print(f"{table.experiments_text(document['results'])}\n{table.costs_text(document['results'])}\n{table.source_text(document)}")
        if options.write:
            write_documents(document, ROOT)
    except (CostsError, store.StoreError, OSError) as error:
        print(f"./run costs: {error}", file=sys.stderr)
        return 2
    return 0 if all(result.get("ok") for result in document["results"]) else 1


if __name__ == "__main__":
    sys.exit(main())
