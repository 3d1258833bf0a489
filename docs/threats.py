#!/usr/bin/env python3
"""Draws who is trusted, for .github/SECURITY.md: docs/threats-light.svg and docs/threats-dark.svg.

python3 docs/threats.py           writes both
python3 docs/threats.py --check   fails unless they are what this draws"""
import pathlib
import sys
from html import escape

DOCS = pathlib.Path(__file__).resolve().parent
THEMES = {
    "light": {"ink": "#1f2328", "faint": "#59636e", "page": "#ffffff", "trusted": "#ddf4ff",
              "hostile": "#ffebe9", "asset": "#fff8c5", "border": "#cf222e"},
    "dark": {"ink": "#f0f6fc", "faint": "#9198a1", "page": "#0d1117", "trusted": "#12304f",
             "hostile": "#4b1218", "asset": "#3b2e06", "border": "#ff7b72"},
}
TITLE = "Who is trusted, and where the boundaries are"
# kind, left, top, width, height, heading, lines
BOXES = [
    ("hostile", 20, 60, 170, 92, "The model", ["and all that it reads:", "pages, issues, files"]),
    ("trusted", 250, 60, 150, 92, "The client", ["you choose it,", "it asks you"]),
    ("trusted", 460, 60, 220, 92, "codeexec: the one gate",
     ["policy, paths, time, output,", "secrets masked, audit log"]),
    ("hostile", 90, 240, 200, 92, "Command on this host",
     ["in the kernel's sandbox,", "if it is on"]),
    ("hostile", 330, 240, 200, 92, "Command in a container",
     ["without capabilities and, by", "default, without network"]),
    ("hostile", 570, 240, 200, 92, "Command in a place",
     ["another machine, a job, a", "pod; sandboxed there"]),
    ("asset", 90, 420, 320, 74, "What is protected",
     ["files, keys, processes, the machine,", "other agents, the audit log"]),
    ("asset", 450, 420, 320, 74, "The network",
     ["off, own 127.0.0.1, names that you", "allow, or all that this host reaches"]),
]
# from x, y to x, y
ARROWS = [(190, 106, 250, 106), (400, 106, 460, 106), (530, 152, 190, 240), (570, 152, 430, 240),
          (610, 152, 670, 240), (190, 332, 210, 420), (430, 332, 330, 420), (670, 332, 640, 420)]
# label, from x, y to x, y: no trust goes across
BOUNDARIES = [("B1", 220, 40, 220, 172), ("B2", 430, 40, 430, 172), ("B3", 70, 196, 790, 196),
              ("B4", 70, 376, 790, 376)]


def drawn(theme):
    colour = THEMES[theme]
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 520" role="img" '
             'font-family="system-ui, sans-serif" font-size="14">',
             f"<title>{TITLE}</title>",
             '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
             f'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8Z" fill="{colour["faint"]}"/>'
             "</marker></defs>",
             f'<rect width="820" height="520" rx="8" fill="{colour["page"]}"/>']
    for x1, y1, x2, y2 in ARROWS:
        lines.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{colour["faint"]}" '
                     'stroke-width="1.5" marker-end="url(#head)"/>')
    for label, x1, y1, x2, y2 in BOUNDARIES:
        lines.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{colour["border"]}" '
                     'stroke-width="2" stroke-dasharray="7 5"/>')
        x, y = (x1, y1 - 8) if x1 == x2 else (x1 - 22, y1 + 5)
        lines.append(f'<text x="{x}" y="{y}" text-anchor="middle" font-weight="600" '
                     f'fill="{colour["border"]}">{label}</text>')
    for kind, left, top, width, height, heading, texts in BOXES:
        middle = left + width // 2
        lines.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" '
                     f'fill="{colour[kind]}" stroke="{colour["faint"]}"/>')
        lines.append(f'<text x="{middle}" y="{top + 26}" text-anchor="middle" font-weight="600" '
                     f'fill="{colour["ink"]}">{escape(heading)}</text>')
        for at, text in enumerate(texts):
            lines.append(f'<text x="{middle}" y="{top + 48 + 19 * at}" text-anchor="middle" '
                         f'fill="{colour["ink"]}">{escape(text)}</text>')
    for at, (kind, text) in enumerate((("hostile", "not trusted"), ("trusted", "trusted"),
                                       ("asset", "protected"))):
        lines.append(f'<rect x="{700}" y="{60 + 28 * at}" width="16" height="16" rx="3" '
                     f'fill="{colour[kind]}" stroke="{colour["faint"]}"/>')
        lines.append(f'<text x="724" y="{73 + 28 * at}" fill="{colour["faint"]}">{text}</text>')
    return "\n".join(lines) + "\n</svg>\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(f"docs/threats.py: {' '.join(arguments)!r} is no call of it\n{__doc__}")
    for theme in THEMES:
        file = DOCS / f"threats-{theme}.svg"
        if not arguments:
            file.write_text(drawn(theme), encoding="ascii")
        elif not file.exists() or file.read_text(encoding="ascii") != drawn(theme):
            sys.exit(f"docs/threats.py: {file.name} is not what it draws: run it")


main(sys.argv[1:])
