#!/usr/bin/env python3
"""Draws docs/command.svg, how a command travels, which README.md shows:

    python3 tests/docs/drawing.py > docs/command.svg

check.py fails when the file is not what this prints. Colours follow the reader's light or dark
scheme. The font is the reader's own, so the boxes leave room for a wider one.
"""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 950, 416
STYLE = """
  text { font: 14px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
         fill: #1f2328; }
  .title { font-weight: 600; }
  .small { font-size: 12px; fill: #59636e; }
  .number { font-size: 12px; font-weight: 600; fill: #ffffff; text-anchor: middle; }
  .middle { text-anchor: middle; }
  .box { fill: #ffffff; stroke: #818b98; }
  .gate { fill: #ddf4ff; stroke: #0969da; }
  .disc { fill: #0969da; }
  .way { fill: none; stroke: #0969da; stroke-width: 2; marker-end: url(#tip); }
  .tip { fill: #0969da; }
  .no { fill: none; stroke: #cf222e; stroke-width: 2; stroke-dasharray: 5 4;
        marker-end: url(#stop); }
  .stop { fill: #cf222e; }
  .red { font-size: 12px; fill: #cf222e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .number { fill: #0d1117; }
    .box { fill: #151b23; stroke: #656c76; }
    .gate { fill: #121d2f; stroke: #4493f8; }
    .disc { fill: #4493f8; }
    .way { stroke: #4493f8; }
    .tip { fill: #4493f8; }
    .no { stroke: #f85149; }
    .stop { fill: #f85149; }
    .red { fill: #f85149; }
  }
"""
parts = []


def text(x, y, words, kind=""):
    parts.append(f'<text x="{x}" y="{y}"{kind and f" class={chr(34)}{kind}{chr(34)}"}>'
                 f"{escape(words)}</text>")


def rectangle(x, y, width, height, kind="box"):
    parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')


def box(x, y, width, title, *lines):
    """A title and lines of small text below it; returns the height."""
    height = 34 + 18 * len(lines)
    rectangle(x, y, width, height)
    text(x + 14, y + 23, title, "title")
    for number, line in enumerate(lines, 1):
        text(x + 14, y + 23 + 18 * number, line, "small")
    return height


def disc(x, y, number):
    parts.append(f'<circle class="disc" cx="{x}" cy="{y}" r="9"/>')
    text(x, y + 4, str(number), "number")


def step(x, y, width, number, title, *lines):
    box(x, y, width, "", *lines)
    disc(x + 21, y + 18, number)
    text(x + 38, y + 23, title, "title")


def way(path, kind="way"):
    parts.append(f'<path class="{kind}" d="{path}"/>')


def draw():
    # who asks
    box(40, 56, 164, "MCP client", "Claude Code, Codex,", "Cursor, MassGen ...")
    box(40, 196, 164, "your program", "C++, codeexec.hpp")
    text(208, 82, "stdio", "small")
    way("M204 92 H244")
    way("M204 222 H244")
    # the gate
    rectangle(250, 10, 328, 290, "gate")
    text(414, 34, "one gate for every command", "title middle")
    step(266, 48, 296, 1, "policy",
         "reads the shell as a shell does,", "judges each simple command")
    step(266, 132, 296, 2, "paths",
         "starts only in allowed folders,", "keeps read-only ones unchanged")
    step(266, 216, 296, 3, "environment", "a short list of variables,", "secrets masked")
    # where it runs
    way("M578 155 H624")
    disc(641, 29, 4)
    text(658, 34, "one place to run it", "title")
    box(630, 48, 310, "this host, in a sandbox", "Landlock, seccomp, limits, a network or none")
    box(630, 112, 310, "a container", "docker or podman, one for each agent")
    box(630, 176, 310, "another machine", "ssh, Slurm, Kubernetes, any pipe")
    text(630, 252, "A deadline ends all that the command started.", "small")
    text(630, 270, "Of its output the head and the tail are kept.", "small")
    # what comes back
    way("M785 282 V354 H584")
    way("M414 300 V322", "no")
    text(424, 317, "refused: rule and reason", "red")
    step(356, 328, 222, 5, "result", "how it ended, output, notes")
    way("M356 354 H18 V92 H34")
    way("M18 222 H34")
    text(40, 346, "back to the caller", "small")
    # what is recorded
    way("M467 380 V396 H624")
    disc(641, 396, 6)
    text(658, 401, "one line in the audit log, refused or not", "small")


def svg():
    parts.clear()
    draw()
    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
  aria-labelledby="name">
  <title id="name">How a command travels: from an MCP client or a C++ program through one gate of
  policy, paths and environment to a sandbox, a container or another machine, and back as a
  result and a line in the audit log</title>
  <style>{STYLE}  </style>
  <defs>
    <marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5"
      orient="auto"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker>
    <marker id="stop" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5"
      orient="auto"><path class="stop" d="M0 0 L8 4 L0 8 z"/></marker>
  </defs>
  {body}
</svg>
"""


if __name__ == "__main__":
    print(svg(), end="")
