"""Measures what each operation of ramie costs on this machine: some four minutes.

  ./run costs                 measures, and prints the table
  ./run costs --write         also writes it into docs/costs.md, between the marks there
  ./run costs --from FILE     uses an earlier measurement (build/costs/<time>.json)
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from compare import store
from compare.__main__ import LAB, revision
from compare.sampling import cores_for, run_process, too_busy
from costs import table

ROOT = Path(__file__).resolve().parent.parent.parent
RUNS = 9
LEAST_MS = 50  # of a run: several time slices
CORE_LEAST = 0.9  # of the core that one worker is bound to; a guess
TIMEOUT_S = 600
# Document, name of the marks, the text between them.
PLACES = [("docs/costs.md", "costs", table.costs_text), ("docs/costs.md", "experiments", table.experiments_text)]


class CostsError(Exception):
    """What cannot be measured or written."""


def refused(result, cores):
    """The same, or a failure if it kept more cores busy than it should have had."""
    busy = too_busy({**result, "workers": cores})
    return {**result, "ok": False, "error": f"kept {busy:.2f} cores busy instead of {cores}"} if busy else result


def measure(lab, workload, styles, workers, cores, options):
    """The results of the lab, of so many workers (None: the workload's own) on so many cores. Throws CostsError."""
    sizes = table.SIZES[workload][1 if options.quick else 0]
    command = [str(lab), workload, "--json", f"--style={','.join(styles)}", f"--runs={table.RUNS.get(workload, options.runs)}"]
    if not options.quick and workload not in table.RUNS:
        command.append(f"--least-ms={LEAST_MS}")
    command += [f"--{name}" if name == "messages-only" else f"--{name}={value}" for name, value in sizes.items()]
    command += [f"--workers={workers}"] if workers else []
    code, out, err, _, _ = run_process(command, {}, ROOT, TIMEOUT_S, cores_for(cores))
    if code not in (0, 1):
        raise CostsError(f"{' '.join(command)} ended with {code}: {err.strip()[-200:]}")
    return [refused(json.loads(line), cores) for line in out.splitlines() if line.startswith("{")]


def measure_all(options):
    results = []
    all_cores = len(os.sched_getaffinity(0))
    for workload, styles in table.styles().items():
        print(workload, file=sys.stderr)
        alone = [style for style in styles if (workload, style) not in table.NEED_A_SECOND_CORE]
        both = [style for style in styles if style not in alone]
        results += measure(options.lab, workload, alone, 1 if table.is_experiment(workload) else None, 1, options)
        if both:
            results += measure(options.lab, workload, both, None, all_cores, options)
        if table.is_experiment(workload) and all_cores > 1:
            results += measure(options.lab, workload, [s for s in styles if table.is_experiment(workload, s)], all_cores, all_cores, options)
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
        "machine": {**results[0]["machine"], "cores_allowed": all_cores},  # the first was bound to one
        "results": results,
    }


def marked(text, name, filling, path):
    """`text` with `filling` between the marks of that name. Throws CostsError."""
    begin, end = f"<!-- {name}: by ./run costs -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise CostsError(f"{path}: has not one line '{begin.strip()}' and after it one '{end}'")
    return text[: text.index(begin) + len(begin)] + filling + text[text.index(end) :]


def check_core(results):
    """Throws CostsError if other programs had much of the core to which one worker is bound: all times are too long then."""
    shares = [table.median(r["busy_cores"]) for r in results
              if r.get("busy_cores") and r["workers"] == 1 and (r["workload"], r["style"]) not in table.NEED_A_SECOND_CORE]
    if shares and table.median(shares) < CORE_LEAST:
        raise CostsError(f"not written: other programs had {100 - table.median(shares) * 100:.0f} % of the core")


def write_documents(document, root):
    check_core(document["results"])
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
