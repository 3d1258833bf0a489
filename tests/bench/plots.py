"""Draws the results of a run of the benchmarks: plots.py FOLDER [DOCS] makes FOLDER/NAME.svg of
each group of rows in FOLDER/results.json, and of some groups DOCS/numbers-NAME.svg. A bar is what
ours costs beside a rival, on a logarithmic scale: left of 1 ours is the cheaper one. Rates are
turned around for that. Needs matplotlib."""
import json
import os
import sys

import matplotlib

matplotlib.use("svg")
# Texts stay texts, and the same results make the same file.
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "codeexec"
import matplotlib.pyplot as plt  # noqa: E402

ON_PAGES = ("process", "mcp", "docker")
BETTER_WHEN_MORE = ("GiB/s", "MiB/s", "calls/s")


def draw(path, group, rows, caption):
    names = [f"{row['what']}\nbeside {row['rival']}" for row in rows]
    costs = [1 / row["ratio"] if row["unit"] in BETTER_WHEN_MORE else row["ratio"] for row in rows]
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.5 * len(rows)))
    colors = ["#2a6f97" if cost <= 1 else "#b56576" for cost in costs]
    places = list(range(len(rows), 0, -1))
    # From 1, so that as much faster and as much slower look alike.
    axes.barh(places, [cost - 1 for cost in costs], left=1, color=colors)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(places, names, fontsize=7)
    axes.set_xlim(min(costs + [0.5]) / 3, max(costs + [2]) * 3)
    axes.set_ylim(0.3, len(rows) + 0.7)
    for place, cost in zip(places, costs):
        axes.text(cost, place, f" {cost:.3g} ", fontsize=7, va="center",
                  ha="left" if cost > 1 else "right")
    axes.set_title(f"{group}: cost of codeexec / cost of the other", fontsize=10)
    figure.text(0.01, 0.01, caption, fontsize=6)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
        results = json.load(file)
    machine = results["machine"]
    caption = (f"{machine['processors']} x {machine['processor']}, {machine['system']} "
               f"{machine['kernel']}, {machine.get('compiler', '')} {machine.get('flags', '')}, "
               f"{machine['date']}")
    groups = {}
    for row in results["rows"]:
        if row.get("ratio"):
            groups.setdefault(row["group"], []).append(row)
    for group, rows in groups.items():
        path = os.path.join(folder, group + ".svg")
        draw(path, group, rows, caption)
        print("plot: " + path)
        if group in ON_PAGES and len(sys.argv) > 2:
            draw(os.path.join(sys.argv[2], f"numbers-{group}.svg"), group, rows, caption)


main()
