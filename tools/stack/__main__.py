"""./run stack-usage [PATTERN...]: how much stack fibers need at most, from gcc's tables of frames and calls."""

import argparse
import json
import re
import signal
import sys

from stack import analysis, callgraph, known, needs, report

FIBERS = r"fiber_task<R, Fn>::run\("
ACTORS = r"ramie::detail::act_on_\w+\(.* \[with A = |ramie::detail::actor_class<.*>::serve\(\)"


def pair(text, second=str):
    left, equals, right = text.rpartition("=")
    if not equals or not left or not right:
        raise argparse.ArgumentTypeError(f"'{text}' is no PATTERN=VALUE")
    try:
        re.compile(left)
        return left, second(right)
    except (ValueError, re.error) as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None


def turns(text):
    return pair(text, int)


def pattern(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None
    return text


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="./run stack-usage", description=__doc__, epilog=(
        "A pattern is a regular expression, looked for in the names that gcc prints and in the linker's. Without one: all "
        "functions of fibers and handlers of actors, a line each (bytes of frames, all that the stack holds, stack_size)."))
    parser.add_argument("patterns", nargs="*", type=pattern, metavar="PATTERN", help="entry functions")
    parser.add_argument("--in", dest="paths", action="append", metavar="PATH",
                        help=".ci files, or folders with such (default: the lab, built for this)")
    parser.add_argument("--known", action="append", default=[], metavar="FILE",
                        help="what other functions need: bytes and a pattern a line; goes before tools/stack/known.txt")
    parser.add_argument("--unknown", type=int, default=known.UNKNOWN_BYTES, metavar="BYTES",
                        help="for functions that no table has (%(default)s)")
    parser.add_argument("--indirect", type=int, default=known.INDIRECT_BYTES, metavar="BYTES",
                        help="for calls through pointers (%(default)s)")
    parser.add_argument("--calls", type=pair, action="append", default=[], metavar="PATTERN=PATTERN",
                        help="calls through pointers in these functions go to those")
    parser.add_argument("--turns", type=turns, action="append", default=[], metavar="PATTERN=N",
                        help="recursion with such a function goes so deep")
    parser.add_argument("--without", type=pattern, action="append", default=[], metavar="PATTERN", help="never called")
    parser.add_argument("--bind-now", action="store_true", help="linked with -z now: no function is looked for at its first call")
    parser.add_argument("--signal-handler", type=int, default=needs.HANDLER_BYTES, metavar="BYTES",
                        help="of handlers on the fiber's stack (%(default)s); -1: they all have a stack of their own")
    parser.add_argument("--limit", type=int, metavar="BYTES", help="exit with 1 if a stack_size has to be larger")
    parser.add_argument("--json", action="store_true", help="an object a line")
    return parser.parse_args(words)


def main():
    options = arguments()
    try:
        graph = callgraph.read(options.paths or [])
        tables = [known.read_table(path) for path in (*options.known, known.OWN)]
    except (callgraph.CallgraphError, known.KnownError) as error:
        print(f"./run stack-usage: {error}", file=sys.stderr)
        return 2
    figures = known.Known(tables, options.unknown, options.indirect, 0 if options.bind_now else known.BINDING_BYTES)
    work = analysis.Analysis(graph, figures, analysis.Options(options.turns, options.calls, options.without))
    patterns = options.patterns or [FIBERS, ACTORS]
    entries = {f.title: f for wanted in patterns for f in work.find(wanted)}
    if not entries:
        print(f"./run stack-usage: no function with a frame matches {' or '.join(patterns)}", file=sys.stderr)
        return 2
    on_signal = 0 if options.signal_handler < 0 else needs.signal_frame() + options.signal_handler
    loop, turn = needs.loop_bytes(graph), needs.turn_bytes(graph)
    # For a function that either may call, it is unknown.
    found = [(worst, needs.Needs(worst.size, loop + (0 if report.is_fiber(worst) else turn), on_signal))
             for worst in map(work.worst, entries.values())]
    found.sort(key=lambda both: -both[0].size)
    if not options.patterns and not options.json:
        print("  frames together stack_size")
    for worst, need in found:
        if options.json:
            print(json.dumps(report.as_object(worst, need)))
        else:
            print(report.text(worst, need, figures) if options.patterns else report.row(worst, need))
    return 1 if options.limit and any(need.slot > options.limit for _, need in found) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    sys.exit(main())
