#!/usr/bin/env python3
"""Proves the models in tests/models by SPIN, and that each fails without its fence.

Each tests/models/<name>.pml (tso.pml is included by the others) is searched exhaustively: all schedules, and all orders
in which stores become visible on x86-64. Then once more without each step that BROKEN names, where an error must
be found; a model that cannot fail proves nothing. Needs spin and a C compiler.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "models"
# What each model is searched without, to see that it finds the error.
BROKEN = {
    "biased_lock": ["NO_HEAVY_FENCE"],
    "spawn_deque": ["NO_HEAVY_FENCE"],
    "fork_deque": ["NO_HEAVY_FENCE"],
    "wait_word": ["NO_HEAVY_FENCE", "NO_SECOND_LOOK"],
    "idle_set": ["NO_HEAVY_FENCE", "NO_END_FENCE"],
}


def search(model: pathlib.Path, definitions: list[str], timeout_s: float) -> tuple[int, int]:
    """How many errors, and how many states."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["spin", "-a", *(f"-D{d}" for d in definitions), str(model)], cwd=folder, check=True,
                       capture_output=True, timeout=timeout_s)
        subprocess.run(["cc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True,
                       timeout=timeout_s)
        out = subprocess.run(["./pan", "-m1000000"], cwd=folder, check=True, capture_output=True, text=True,
                             timeout=timeout_s).stdout
    errors = re.search(r"errors: (\d+)", out)
    states = re.search(r"(\d+) states, stored", out)
    if errors is None or states is None or "max search depth too small" in out:
        raise RuntimeError(f"{model.name}: not searched to the end:\n{out}")
    return int(errors.group(1)), int(states.group(1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of models; default: all")
    parser.add_argument("--timeout", type=float, default=1200, metavar="SECONDS", help="of each step")
    args = parser.parse_args()
    bad = 0
    found = {p.stem for p in MODELS.glob("*.pml")} - {"tso"}
    if found != BROKEN.keys():
        print(f"tests/models has {sorted(found)}, this script knows {sorted(BROKEN)}")
        return 1
    for name in args.names or sorted(BROKEN):
        model = MODELS / f"{name}.pml"
        for without in [None, *BROKEN[name]]:
            began = time.monotonic()
            errors, states = search(model, [without] if without else [], args.timeout)
            right = (errors == 0) == (without is None)
            bad += not right
            print(f"{name:12} {without or 'as it is':16} {errors} errors, {states:8} states, "
                  f"{time.monotonic() - began:5.1f} s: {'ok' if right else 'WRONG'}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
