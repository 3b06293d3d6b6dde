"""Charts as SVG text that takes its colours from the page, readable in light and dark mode.

matplotlib draws with stand-in colours; in its output they are replaced by CSS variables.
"""

import io
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (the backend has to be chosen first)
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

INK, LINE = "#010203", "#040506"
SERIES = [f"#0a0b{index:02x}" for index in range(20)]
WIDTH = 11.5  # inches: the page's width at its own size of text
MARKERS = ("o", "D", "s", "^", "v", "P", "X", "*")

matplotlib.rcParams.update({
    "svg.fonttype": "none", "font.size": 10, "font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": LINE, "xtick.color": INK, "ytick.color": INK, "grid.color": LINE, "axes.grid": True,
    "axes.grid.axis": "x", "axes.axisbelow": True, "grid.linewidth": 0.6, "axes.spines.top": False,
    "axes.spines.right": False, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "legend.frameon": False, "axes.titlesize": 10, "axes.titlelocation": "left", "legend.fontsize": 9,
})


def plain_number(value, _=None):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:g}"


def svg_of(figure, name):
    """The <svg> element. `name` makes its ids unique on the page."""
    matplotlib.rcParams["svg.hashsalt"] = name
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    for stand_in, variable in [(INK, "ink"), (LINE, "line")] + [(c, f"c{i}") for i, c in enumerate(SERIES)]:
        text = text.replace(stand_in, f"var(--{variable})")
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans'")
    # The page sets its width.
    text = re.sub(r'<svg ([^>]*?)width="[\d.]+pt"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)height="[\d.]+pt"', r"<svg \1", text, count=1)
    # A marker is drawn where it is used, and takes its colour there; ids of groups mean nothing and would be duplicates.
    text = re.sub(r'<g id="(?:figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|legend|Line|Path|Quad)[^"]*"',
                  "<g", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


def log_axis(axis):
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if high < low * 200 else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(plain_number))
    axis.set_minor_formatter(NullFormatter())


def name_rows(axes, rows):
    """In the colour of each row's dots; ramie's, which has the first colour, in bold."""
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    several = len({row[1] for row in rows}) > 1
    for label, row in zip(axes.get_yticklabels(), rows):
        if several and row[1] == 0:
            label.set_fontweight("bold")


def dots(name, rows, series, label):
    """A row for each contestant, a dot for each of `series` in it, a line from the minimum to the maximum.

    `rows` is [(text, colour index, {series: (median, least, most)})], the first on top.
    """
    figure, axes = pyplot.subplots(figsize=(WIDTH, 0.9 + 0.34 * len(rows)))
    step = 0.5 / max(1, len(series))
    for row, (_, colour, values) in enumerate(rows):
        for index, key in enumerate(series):
            if key not in values:
                continue
            middle, least, most = values[key]
            y = row + (index - (len(series) - 1) / 2) * step
            axes.plot([least, most], [y, y], color=SERIES[colour], linewidth=1.4, alpha=0.7)
            axes.plot([middle], [y], MARKERS[index], color=SERIES[colour], markersize=6)
    for index, key in enumerate(series):
        axes.plot([], [], MARKERS[index], color=INK, markersize=6, label=key)
    name_rows(axes, rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    log_axis(axes.xaxis)
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if len(series) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(series), handletextpad=0.2)
    return svg_of(figure, name)


def lines(name, panels, xlabel, ylabel, xlog=True, ylog=False, percent=False, same_y=True):
    """Small multiples: `panels` is [(title, [(text, colour index, {x: y})])]."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(WIDTH, 0.6 + 2.9 * rows), squeeze=False, sharey=same_y,
                                  sharex=True)
    for place, (title, drawn) in enumerate(panels):
        axes = grid[place // columns][place % columns]
        axes.set_title(title)
        axes.grid(True, axis="y")
        for index, (text, colour, values) in enumerate(drawn):
            xs = sorted(values)
            axes.plot(xs, [values[x] for x in xs], marker=MARKERS[index % len(MARKERS)], markersize=4, linewidth=1.5,
                      color=SERIES[colour], label=text)
        if xlog:
            axes.set_xscale("log")
            log_axis(axes.xaxis)
        else:
            axes.set_xticks(sorted({x for _, _, values in drawn for x in values}))
        if ylog:
            axes.set_yscale("log")
            log_axis(axes.yaxis)
        if percent:
            axes.set_ylim(0, 1.05)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v * 100:.0f} %"))
        if place // columns == rows - 1:
            axes.set_xlabel(xlabel)
        if place % columns == 0:
            axes.set_ylabel(ylabel)
    for empty in range(len(panels), rows * columns):
        grid[empty // columns][empty % columns].axis("off")
    found = {}
    for axes in grid.flat:
        for handle, text in zip(*axes.get_legend_handles_labels()):
            found.setdefault(text, handle)
    if len(found) > 1:
        figure.legend(found.values(), found.keys(), loc="lower center", ncols=min(5, len(found)), bbox_to_anchor=(0.5, 1.0))
    figure.tight_layout()
    return svg_of(figure, name)


def stacked(name, rows, parts, label):
    """Horizontal bars: `rows` is [(text, colour index, [value of each part])]; parts differ in opacity."""
    figure, axes = pyplot.subplots(figsize=(WIDTH, 0.9 + 0.32 * len(rows)))
    shades = (1.0, 0.45, 0.2)
    for row, (_, colour, values) in enumerate(rows):
        left = 0
        for part, value in enumerate(values):
            axes.barh(row, value, left=left, color=SERIES[colour], alpha=shades[part], height=0.7)
            left += value
        axes.text(left, row, f" {plain_number(round(left, 3))}", va="center", fontsize=9)
    for part, text in enumerate(parts):
        axes.barh([], [], color=INK, alpha=shades[part], label=text)
    name_rows(axes, rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0)
    if len(parts) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(parts))
    return svg_of(figure, name)
