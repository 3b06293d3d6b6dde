"""HTML: escaping, tables, the frame and the style of the page."""

import html

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d2125; --soft: #5b6670; --line: #c9ccd0; --card: #ffffff;
  --good: #136f3b; --good-paper: #dff3e4; --bad: #a11f2b; --bad-paper: #fbe1e1; --even-paper: #eceef1;
  --c0: #c2410c; --c1: #0369a1; --c2: #15803d; --c3: #7e22ce; --c4: #a16207; --c5: #be185d; --c6: #0f766e; --c7: #4338ca;
  --c8: #64748b; --c9: #9f1239; --c10: #3f6212; --c11: #155e75; --c12: #6b21a8; --c13: #1d4ed8; --c14: #047857; --c15: #854d0e;
  --c16: #9d174d; --c17: #334155; --c18: #5b21b6; --c19: #0e7490; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e6e8ea; --soft: #9aa5b1; --line: #3a4148; --card: #1c2126;
  --good: #7fdc9f; --good-paper: #143322; --bad: #ff9a9a; --bad-paper: #451a1d; --even-paper: #272c32;
  --c0: #fb923c; --c1: #38bdf8; --c2: #4ade80; --c3: #c084fc; --c4: #facc15; --c5: #f472b6; --c6: #2dd4bf; --c7: #a5b4fc;
  --c8: #94a3b8; --c9: #fda4af; --c10: #bef264; --c11: #67e8f9; --c12: #d8b4fe; --c13: #93c5fd; --c14: #6ee7b7; --c15: #fde047;
  --c16: #f9a8d4; --c17: #cbd5e1; --c18: #c4b5fd; --c19: #a5f3fc; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; margin: 0.5rem 0; } h2 { margin: 3rem 0 0.5rem; padding-top: 0.5rem; border-top: 1px solid var(--line); }
h3 { margin: 1.6rem 0 0.3rem; font-size: 1.05rem; } p, li { max-width: 48rem; } .soft { color: var(--soft); }
figure { margin: 1rem 0; padding: 0.8rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; }
figure svg { width: 100%; min-width: 30rem; height: auto; display: block; } figcaption { color: var(--soft); font-size: 0.9rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.88rem; margin: 0.6rem 0; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; } th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { white-space: normal; }
td.name { white-space: normal; min-width: 11rem; max-width: 17rem; text-align: left; } td:first-child, th:first-child { position: sticky; left: 0;
  background: var(--paper); } details td:first-child { background: var(--paper); } td.better { background: var(--good-paper); color: var(--good); font-weight: 600; }
td.worse { background: var(--bad-paper); color: var(--bad); font-weight: 600; } td.even { background: var(--even-paper); }
td small { display: block; font-weight: 400; font-size: 0.75rem; opacity: 0.85; }
details { margin: 0.4rem 0; } summary { cursor: pointer; color: var(--soft); } nav { margin: 1rem 0; } nav a { margin-right: 1rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); gap: 1rem; }
.picture { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem 1rem 0.8rem; container-type: inline-size; }
.picture h3 { margin: 0.5rem 0 0.7rem; font-size: 1.2rem; } .picture h3 small { color: var(--soft); font-weight: 400; font-size: 0.85rem; margin-left: 0.4rem; }
.bars { display: grid; grid-template-columns: minmax(11rem, 17rem) 1fr; column-gap: 0.8rem; } .bars .what { align-self: center; line-height: 1.25; font-size: 0.92rem; }
.track { position: relative; padding: 0.3rem 0; } .track i, .axis span { position: absolute; top: 0; bottom: 0; }
.track i { border-left: 1px solid var(--line); } .track i.call { border-left: 2px dashed var(--c2); } .track i.thread { border-left: 2px dashed var(--c5); }
.track .bar, .legend .bar { height: 0.85rem; border-radius: 0 3px 3px 0; position: relative; margin: 1px 0; min-width: 2px; }
.bar.w0 { background: var(--c0); } .bar.w1 { background: var(--c1); } .track .bar b { position: absolute; left: 100%; top: 50%; transform: translateY(-50%);
  margin-left: 0.35rem; font-size: 0.78rem; font-weight: 600; white-space: nowrap; background: var(--card); padding: 0 0.15rem; line-height: 1; }
.axis { position: relative; height: 1.2rem; border-top: 1px solid var(--line); color: var(--soft); font-size: 0.75rem; }
.axis span { transform: translateX(-50%); white-space: nowrap; } .axis span:first-child { transform: none; }
.warning { border-left: 4px solid var(--bad); padding: 0.3rem 0.8rem; background: var(--bad-paper); color: var(--bad); }
.legend { max-width: none; font-size: 0.92rem; line-height: 2; } .legend > span { white-space: nowrap; margin-right: 1.2rem; } .legend i { display: inline-block; vertical-align: middle; margin-right: 0.4rem; }
.legend .bar { width: 1.6rem; margin: 0 0.4rem 0 0; } .legend .mark { width: 0; height: 1.1rem; border-left: 2px dashed; } .legend .mark.call { border-color: var(--c2); } .legend .mark.thread { border-color: var(--c5); }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; } .cards div { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 1rem; color: var(--soft); }
.cards b { color: var(--ink); font-size: 1.3rem; margin-right: 0.5rem; }
@container (max-width: 30rem) { .bars { grid-template-columns: 1fr; } .bars .what { margin-top: 0.5rem; } .axis span:nth-child(even) { display: none; } }
a { color: var(--c1); } .big { font-size: 1.15rem; } .key { display: inline-block; padding: 0 0.4rem; border-radius: 3px; }
"""


def text(value):
    return html.escape(str(value))


def anchor(title):
    return "".join(c if c.isalnum() else "-" for c in title.lower())


class Cell:
    """A table's cell with a class and a second, smaller line."""

    def __init__(self, main, small="", kind="", title=""):
        self.main, self.small, self.kind, self.title = main, small, kind, title

    def html(self):
        kind = f' class="{self.kind}"' if self.kind else ""
        title = f' title="{text(self.title)}"' if self.title else ""
        small = f"<small>{text(self.small)}</small>" if self.small else ""
        return f"<td{kind}{title}>{text(self.main)}{small}</td>"


def table(columns, rows):
    head = "".join(f"<th>{text(column)}</th>" for column in columns)
    body = ""
    for row in rows:
        cells = "".join(cell.html() if isinstance(cell, Cell) else f"<td>{text(cell)}</td>" for cell in row)
        body += f"<tr>{cells}</tr>\n"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n'


def chart(svg, caption, columns, rows):
    """A figure with its numbers folded up below."""
    return (f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>\n<details><summary>the numbers</summary>"
            f"{table(columns, rows)}</details>\n")


def document(title, body):
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
            f"<body><main>\n{body}</main></body></html>\n")
