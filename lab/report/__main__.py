"""./run report [FILE]: one self-contained page of HTML from the results of ./run compare or ./run bench."""

import argparse
import sys
from pathlib import Path

from compare import store

from report import bench, markdown

ROOT = Path(__file__).resolve().parent.parent.parent


def load(path):
    """The results of either program. Throws StoreError."""
    try:
        return store.load(path)
    except store.StoreError:
        results = bench.load(path)
        if results is None:
            raise
        return results


def main():
    parser = argparse.ArgumentParser(prog="./run report", description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, help="a results file (default: the newest in build/compare)")
    parser.add_argument("--output", type=Path, help="the page (default: beside the results)")
    parser.add_argument("--markdown", nargs="?", const="-", metavar="DOCUMENT",
                        help="six rows as a table of Markdown instead; into a document that has marks for it, if one is named")
    parser.add_argument("--confirm", type=Path, metavar="RESULTS", action="append", default=[],
                        help="with --markdown: a comparison of another hour, or a part of it, if given again; bold is what holds in both")
    options = parser.parse_args()
    path = options.results or store.newest(ROOT / "build" / "compare")
    if path is None:
        print("./run report: there are no results yet, see ./run compare", file=sys.stderr)
        return 2
    try:
        if options.markdown:
            markdown.run(path, options.confirm, None if options.markdown == "-" else options.markdown)
            return 0
        results = load(path)
        if not results["samples"]:
            raise store.StoreError(f"{path}: has no samples")
        from report.chapters import whole_page  # late: matplotlib is slow to load
        output = options.output or path.with_suffix(".html")
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(whole_page(results), encoding="utf-8")
    except (store.StoreError, markdown.MarkdownError, OSError) as error:
        print(f"./run report: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
