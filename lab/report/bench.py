"""Results of `ramie-lab bench`, ramie alone, in the form in which ./run compare has them."""

import json

from compare import store
from compare.cases import all_cases

FIGURES = {"memory": ("figures.resident_bytes_per_fiber", "resident bytes each"), "idle": ("seconds", "CPU seconds")}
OTHER = "Switches and messages"


def load(path):
    """None if it is something else."""
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
            "experiment": known.experiment if known else OTHER, "title": known.title if known else first["workload"],
            "workload": first["workload"], "unit": first["unit"], "workers": workers, "parameters": parameters,
            "metric": metric, "metric_title": metric_title, "more_is_better": False, "memory": "peak_rss_bytes",
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
    return results
