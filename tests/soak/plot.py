"""Draws the samples of a run: python3 plot.py SAMPLES.CSV CURVE.SVG (or .png). Wants matplotlib."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402: after the choice of what draws

MIB = 1 << 20
MOST_POINTS = 150  # of a line, so that the file stays small


def main():
    series = {}
    with open(sys.argv[1], encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            if row["phase"] == "quiet":
                series.setdefault(row["name"], []).append(row)
    pyplot.rcParams.update({"svg.fonttype": "none", "font.size": 8})
    figure, panels = pyplot.subplots(3, 1, sharex=True, figsize=(7, 6))
    kinds = [("private", "private memory, MiB", MIB), ("descriptors", "descriptors", 1)]
    kinds += [("threads", "threads", 1)]
    for panel, (kind, label, unit) in zip(panels, kinds):
        for name, rows in series.items():
            rows = rows[:: max(1, len(rows) // MOST_POINTS)]
            minutes = [float(row["seconds"]) / 60 for row in rows]
            panel.plot(minutes, [int(row[kind]) / unit for row in rows], label=name, linewidth=1)
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.grid(linewidth=0.3)
    panels[0].legend(fontsize=7, ncol=len(series))
    panels[-1].set_xlabel("minutes; at each pause of the load")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=100)


main()
