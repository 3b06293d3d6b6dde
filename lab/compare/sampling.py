"""Runs one contestant once, in a process of its own, and reads what it prints."""

import json
import os
import signal
import subprocess
import time


def load_average():
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def parse_output(text):
    """The last JSON object of an output to which a runtime may have added lines. None if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def problem_of(code, stderr, timeout_s):
    """Why a process that printed nothing usable ended."""
    last = stderr.strip().splitlines()[-1:] or [""]
    if code is None:
        return f"took longer than {timeout_s} s"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"was ended by {name}. {last[0]}".strip()
    return f"ended with exit code {code}. {last[0]}".strip()


def cores_for(workers):
    """As many of the cores as there are workers, so that no system's helper threads are a worker more; None if there are no more cores."""
    allowed = sorted(os.sched_getaffinity(0))
    return set(allowed[:workers]) if workers < len(allowed) else None


def run_process(words, environment, folder, timeout_s, cores=None):
    """Runs it on `cores`, or on all. (exit code or None if it took too long, output, complaints, real seconds, CPU seconds)."""
    start = time.monotonic()
    before = os.times()
    try:
        process = subprocess.Popen(words, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                                   preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None)
    except OSError as error:
        return 127, "", str(error), 0.0, 0.0
    try:
        out, err = process.communicate(timeout=timeout_s)
        code = process.returncode
    except BaseException as stop:
        # Its own session, so that its children are ended with it.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        out, err = process.communicate()
        if not isinstance(stop, subprocess.TimeoutExpired):
            raise
        code = None
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return code, out, err, time.monotonic() - start, cpu


KEPT = ("system", "version", "workload", "style", "workers", "unit", "units", "seconds", "ns_per_unit",
        "peak_rss_bytes", "base_rss_bytes", "ratio_to_plain", "plain_seconds", "plain_units", "busy_cores", "figures",
        "counters", "error")


BUSY_MOST = 1.1  # cores for each worker, by the clocks of a process that other programs interrupt
CLOCKS_TAKE_S = 0.001  # at most; runs of microseconds look busier than they are, for the processor's clock is read outside the other


def too_busy(printed):
    """More cores than workers in one of the runs, or None."""
    most = BUSY_MOST * printed.get("workers", 1)
    runs = zip(printed.get("busy_cores") or (), printed.get("seconds") or ())
    return max((busy for busy, seconds in runs if (busy - most) * seconds > CLOCKS_TAKE_S), default=None)


def take_sample(words, environment, folder, timeout_s, cores=None):
    """The entry for the results file. `ok` is false, with an `error`, whatever went wrong: also if more cores were busy than there
    were workers."""
    load = load_average()
    code, out, err, real, cpu = run_process(words, environment, folder, timeout_s, cores)
    printed = parse_output(out)
    sample = {"ok": False, "load": load, "took_seconds": round(real, 4), "cpu_seconds": round(cpu, 4)}
    if printed is None:
        sample["error"] = problem_of(code, err, timeout_s)
        return sample
    for name in KEPT:
        if name in printed:
            sample[name] = printed[name]
    sample["ok"] = bool(printed.get("ok")) and code == 0 and printed.get("ns_per_unit") is not None
    if not sample["ok"] and not sample.get("error"):
        sample["error"] = "wrong result" if code == 0 or printed.get("ok") is False else problem_of(code, err, timeout_s)
    busy = too_busy(printed)
    if sample["ok"] and busy:
        workers = printed.get("workers", 1)
        sample["ok"], sample["error"] = False, f"kept {busy:.2f} cores busy with {workers} worker{'s' if workers > 1 else ''}"
    return sample
