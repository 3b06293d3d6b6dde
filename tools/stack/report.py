"""The results as text and as JSON."""

import re

from stack import needs

KINDS = {"external": ", elsewhere", "unknown": ", elsewhere and unknown", "indirect": "", "recursion": ", a circle"}


def short(name, limit=110):
    """Without the parts that all names of ramie's own templates share."""
    if found := re.search(r"fiber_task<R, Fn>::run\(.*\[with R = (.*?); Fn = (.*)\]$", name):
        name = f"fiber {found[2]}"
    elif found := re.search(r"detail::act_on_(\w+)\(.*\[with A = (.*?); M = (.*)\]$", name):
        name = f"actor {found[2]}, {'told' if found[1] == 'tell' else 'asked'} {found[3]}"
    elif found := re.search(r"detail::actor_class<.*detail::fiber_actor_state<.*>, (.*)> >::serve\(\)", name):
        name = f"actor {found[1]}"
    name = name.replace("{anonymous}::", "")
    return name if len(name) <= limit else name[: limit - 3] + "..."


def some(names, most=8):
    shown = ", ".join(short(name, 70) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def is_fiber(worst):
    return "fiber_task<R, Fn>::run(" in worst.entry.name


def place_of(place):
    return "/".join(place.split("/")[-3:])


def text(worst, need, known):
    out = [short(worst.entry.name, 300), f"  {worst.size:>8,} bytes of frames on the worst path:"]
    for step in worst.path:
        at = f"  {place_of(step.place)}" if step.place and not step.kind else ""
        out.append(f"    {step.size:>8,} {short(step.name)}{KINDS.get(step.kind, '')}{at}")
    out.append(f"  {need.loop:>8,} the scheduler's loop below it{'' if is_fiber(worst) else ', and an actor turn'}")
    if need.signal:
        out.append(f"  {need.signal:>8,} a signal and its handler")
    out.append(f"  {need.red_zone:>8,} the red zone")
    out.append(f"  {need.total:>8,} bytes together: stack_size = {need.slot:,}, of which {needs.usable_of(need.slot):,} can be used")
    for names, size, turns in worst.recursions:
        out.append(f"  recursion, {size:,} bytes a turn, counted {turns} time{'s' if turns > 1 else ''}: {some(names)}")
    if worst.unbounded:
        out.append(f"  frames that grow when they run (alloca, arrays), counted without that: {some(worst.unbounded)}")
    if worst.indirect:
        out.append(f"  calls through pointers, {known.indirect_bytes:,} bytes each, in {some(worst.indirect)}")
    if worst.unknown:
        out.append(f"  unknown functions, {known.unknown_bytes:,} bytes each: {some(worst.unknown)}")
    return "\n".join(out)


def row(worst, need):
    notes = [word for word, there in (("recursion", worst.recursions), ("grows", worst.unbounded), ("unknown", worst.unknown))
             if there]
    return f"{worst.size:>8,} {need.total:>8,} {need.slot:>10,}  {short(worst.entry.name, 100)}  {' '.join(notes)}".rstrip()


def as_object(worst, need):
    return {
        "entry": worst.entry.name, "symbol": worst.entry.symbol, "frames_bytes": worst.size, "total_bytes": need.total,
        "stack_size": need.slot, "usable_bytes": needs.usable_of(need.slot), "loop_bytes": need.loop,
        "signal_bytes": need.signal, "red_zone_bytes": need.red_zone,
        "path": [{"name": s.name, "bytes": s.size, "kind": s.kind, "place": s.place} for s in worst.path],
        "recursion": [{"names": names, "bytes_a_turn": size, "turns": turns} for names, size, turns in worst.recursions],
        "indirect": worst.indirect, "unknown": worst.unknown, "unbounded": worst.unbounded,
    }
