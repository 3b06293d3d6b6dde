"""The model of ramie's scheduler: measures its costs, compares itself with the machine, and predicts larger ones.

  ./run model measure FILE [--lab PROGRAM] [--runs N]   some minutes of measurements, on one and two workers
  ./run model measure FILE --typed                      only figures typed into FILE from a document, and the costs anew
  ./run model fit [FILE]                                the costs anew from the same figures, after a change of the model
  ./run model check [FILE]                              the model beside the measurements, with the error
  ./run model predict [FILE] [--cores 4,8,...] [--experiments TEXT]   the five experiments on larger machines
  ./run model costs [FILE]                              the costs and their sources

Without FILE: lab/model/measured.json, which is part of the project.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time
from dataclasses import asdict

from .calibrate import CALIBRATION, NEEDED, checks, costs_of, figures, is_typed, run, time_of
from .costs import Costs
from .machine import Machine
from .predict import EXPERIMENTS, POLICIES, predict

STORED = pathlib.Path(__file__).with_name("measured.json")


def is_idle(seconds=0.3):
    """Is the machine idle? Looks for a moment."""

    def busy():
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(n) for n in file.readline().split()[1:9]]
        return sum(ticks) - ticks[3] - ticks[4]

    before = busy()
    time.sleep(seconds)
    return busy() - before <= 0.15 * seconds * 100 * (os.cpu_count() or 1)


def measure(options):
    commands = CALIBRATION | checks()
    goes_on = pathlib.Path(options.file).exists() and (options.again or options.typed)
    measured = load(options.file) if goes_on else {"figures": {}}
    measured["date"] = datetime.date.today().isoformat()
    kept = measured["figures"]
    if options.typed:
        commands = {name: command for name, command in commands.items() if name in kept and is_typed(kept[name])}
    end = time.monotonic() + 60 * options.patience
    left = sorted(commands, key=lambda name: len(kept.get(name, {"runs": []})["runs"]))
    while left:
        # With patience, measures only while the machine is idle, the oldest figure first.
        if options.patience and time.monotonic() < end and not is_idle():
            time.sleep(2)
            continue
        if options.patience and time.monotonic() >= end:
            print(f"not measured, for want of a quiet moment: {len(left)} of {len(commands)}", file=sys.stderr)
            break
        name = left.pop(0)
        result = run(options.lab, commands[name], options.runs)
        measured["machine"] = {k: result["machine"].get(k) for k in ("cpu", "cpus_online", "kernel", "compiler")}
        kept[name] = figures(result, kept.get(name))
        print(f"[{len(left)} left] {name}: {time_of(name, kept[name]):.1f} ns", file=sys.stderr, flush=True)
        save(options.file, measured)
    if set(NEEDED) <= set(kept):
        measured["costs"] = asdict(costs_of(kept))
        save(options.file, measured)
        for name, source in measured["costs"]["sources"].items():
            if "at the end" in source:
                print(f"{name}: {source}", file=sys.stderr)
    if not set(commands) <= set(kept):
        print(f"not complete yet: ./run model measure {options.file} --again goes on", file=sys.stderr)


def fit_again(options):
    measured = load(options.file)
    measured["costs"] = asdict(costs_of(measured["figures"]))
    save(options.file, measured)


def save(path, measured):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(measured, file, indent=None, separators=(",", ":"))
        file.write("\n")


def compare(measured):
    """(experiment, policy, workers, measured ns, model's ns, variant, from a document) for every measurement."""
    costs = Costs.load(measured["costs"])
    for name in checks():
        if name not in measured["figures"]:
            continue
        experiment, policy, workers = name.split("|")
        real = time_of(name, measured["figures"][name])
        p = predict(costs, experiment, policy, int(workers), Machine(int(workers)))
        yield experiment, policy, int(workers), real, p.ns, p.variant, is_typed(measured["figures"][name])


def check(options):
    print(f"{'experiment':32}{'placement':22}{'workers':>7}{'measured':>11}{'model':>11}{'error':>8}  ns a unit")
    worst = []
    typed = 0
    for experiment, policy, workers, real, ns, variant, is_from_document in compare(load(options.file)):
        error = ns / real - 1
        worst.append(abs(error))
        typed += is_from_document
        mark = "*" if is_from_document else " "
        print(f"{experiment:32}{policy:22}{workers:7}{real:11.1f}{mark}{ns:10.1f}{error:+8.0%}  {variant}")
    worst.sort()
    print(f"median error {worst[len(worst) // 2]:.0%}, largest {worst[-1]:.0%}")
    if typed:
        print(f"* {typed} figures are from a document: ./run model measure {options.file} --typed measures them here")


def show_predictions(options):
    costs = Costs.load(load(options.file)["costs"])
    cores = [int(n) for n in options.cores.split(",")]
    for experiment, (_, unit) in EXPERIMENTS.items():
        if options.experiments not in experiment:
            continue
        print(f"\n| {experiment}, ns a {unit} | " + " | ".join(f"{n} cores" for n in cores) + " |")
        print("| --- |" + " --- |" * len(cores))
        for policy in POLICIES:
            row = [predict(costs, experiment, policy, n) for n in cores]
            print(f"| {policy} | " + " | ".join(f"{p.ns:.3g}" for p in row) + " |", flush=True)


def show_costs(options):
    costs = Costs.load(load(options.file)["costs"])
    for name, source in costs.sources.items():
        value = getattr(costs, name)
        if name == "access":
            text = ", ".join(f"{size / 1024:.0f} KiB: {ns:.1f}" for size, ns in value)
        elif name == "message":
            text = ", ".join(f"{actors} actors: {ns:.1f}" for actors, ns in value)
        else:
            text = f"{value:.4g}"
        print(f"{name:16} {text}  ({source})")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(
        prog="./run model", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    all_of_them = {"measure": measure, "fit": fit_again, "check": check, "predict": show_predictions, "costs": show_costs}
    for name, what in all_of_them.items():
        command = commands.add_parser(name)
        command.set_defaults(what=what)
        if name == "measure":
            command.add_argument("file")
            command.add_argument("--lab", default="build/release/bin/ramie-lab")
            command.add_argument("--runs", type=int, default=5)
            command.add_argument("--patience", type=float, default=0, metavar="MINUTES",
                                 help="measure for at most this long, and only while the machine is idle")
            command.add_argument("--typed", action="store_true", help="update only the figures that FILE takes from a document")
            command.add_argument("--again", action="store_true", help="keep the best of old and new results")
        else:
            command.add_argument("file", nargs="?", default=STORED)
        if name == "predict":
            command.add_argument("--cores", default="4,8,16,32,64,128")
            command.add_argument("--experiments", default="", help="filter: part of a name")
    options = parser.parse_args()
    options.what(options)


if __name__ == "__main__":
    main()
