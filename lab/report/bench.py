"""Results of `ramie-lab bench`, ramie alone, in the form of ./run compare."""

import json

from compare import analysis, store
from compare.cases import all_cases, overhead_title

FIGURES = {"memory": ("figures.resident_bytes_per_fiber", "resident bytes each"), "idle": ("seconds", "CPU seconds"),
           "overhead": ("figures.share_of_direct", "share of the direct speed"),
           "echo": ("figures.server_cpu_ns_per_request", "ns of the server's processor a request"),
           "files": ("figures.cpu_ns_per_read", "ns of the processor a read")}
OTHER = "Switches and messages"
# Workloads that are no case of a comparison, or whose case differs.
TITLES = {"fib": "Fibonacci numbers: the price of a fork", "actors": "Messages to actors", "idle": "A runtime with nothing to do",
          "spawn": "Fibers made, run and ended", "pingpong": "One message at a time, there and back",
          "mixed": "Rings of actors that pass tokens", "skynet": "A tree with ten children a node",
          "stream": "One producer, one consumer", "select": "One consumer selects among four channels",
          "memory": "Memory of a fiber", "echo": "An echo server", "files": "Reads of 4 KiB from a file", "timers": "Timers started, and cancelled or fired"}


def title_of(workload, parameters, known):
    if workload == "overhead":
        return overhead_title(parameters["n"], parameters["x"])
    return TITLES.get(workload) or (known.title if known else workload)


def load(path):
    """None if it is of another kind."""
    try:
        with open(path, encoding="utf-8") as file:
            bench = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(bench, dict) or bench.get("program") != "ramie-lab bench":
        return None
    return converted(bench)


def same_measurement(record):
    return record["workload"], json.dumps(record["options"]["parameters"], sort_keys=True)


def case_of(records, workers):
    """The group of the records of one workload and size on one number of workers."""
    first = records[0]
    known = {case.workload: case for case in reversed(all_cases("full"))}.get(first["workload"])
    metric, metric_title = FIGURES.get(first["workload"], ("ns_per_unit", f"ns a {first['unit']}"))
    parameters = first["options"]["parameters"]
    size = " ".join(f"{name}={value}" for name, value in parameters.items())
    contestants = [f"ramie/{record['style']}" for record in records]
    return {"group": f"{first['workload']} {size}, {workers}w", "family": first["workload"],
            "experiment": known.experiment if known else OTHER, "title": title_of(first["workload"], parameters, known),
            "workload": first["workload"], "unit": first["unit"], "workers": workers, "parameters": parameters,
            "metric": metric, "metric_title": metric_title, "more_is_better": first["workload"] == "overhead", "memory": "peak_rss_bytes",
            "label": size, "headline": True, "contestants": contestants,
            "reference": next((c for c in contestants if c != "ramie/plain"), contestants[0]), "oversubscribed": False}


def samples_of(record, group):
    """A run is a round."""
    for number, seconds in enumerate(record["seconds"]):
        figures = {name: values[number] for name, values in record.get("figures", {}).items() if number < len(values)}
        yield {"group": group, "contestant": f"ramie/{record['style']}", "round": number, "ok": record["ok"],
               "error": record.get("error"), "seconds": [seconds], "figures": figures,
               "ns_per_unit": seconds * 1e9 / record["units"], "peak_rss_bytes": record["peak_rss_bytes"]}


def converted(bench):
    cases, samples = [], []
    by_measurement = {}
    for record in bench["results"]:
        by_measurement.setdefault(same_measurement(record), []).append(record)
    for records in by_measurement.values():
        plain = [record for record in records if record["style"] == "plain"]
        for workers in sorted({record["workers"] for record in records if record["style"] != "plain"} or {1}):
            chosen = plain + [r for r in records if r["style"] != "plain" and r["workers"] == workers]
            case = case_of(chosen, workers)
            cases.append(case)
            for record in chosen:
                samples += samples_of(record, case["group"])
    results = store.new_results("", {"size": "bench"}, cases, bench["machine"], {})
    results |= {"started": bench["started"], "finished": bench["started"], "samples": samples, "alone": True}
    busy = [analysis.median(shares) for record in bench["results"] if (shares := record.get("plain_busy_cores"))]
    if busy:
        results["busy_cores"] = min(busy)
    return results
