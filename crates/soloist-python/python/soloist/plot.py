# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of results with matplotlib, for print: each returns the axes it drew on.

Lines differ by colour, mark and dashes, so that they can be told apart in grey.
"""

from typing import Any

import numpy as np

from . import _pictures
from ._pictures import COLORS

_MARKS = ["o", "s", "^", "D", "v", "P", "X"]
_DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]


def slowdown(frame: Any, x: str, *, task: str | None = None, ax: Any = None) -> Any:
    """A task's slowdown by policy over a column; the band is from the least to the greatest.

    `frame` is what `lab.run` or a sweep gave, of Arrow or pandas; `task` is the first with a slowdown unless
    it is named.
    """
    rows, name = _pictures.of_task(_pictures.rows(frame), task)
    _pictures.key(rows, x)
    ax = _axes(ax)
    of = rows.groupby(["policy", x], observed=True, sort=True)["slowdown"]
    table = of.agg(["mean", "min", "max"]).reset_index()
    # As the legend lists them, so the lines end.
    ends = table.groupby("policy", observed=True)["mean"].last().sort_values(ascending=False)
    places = _places(ax, _pictures.ordered(table[x].unique()))
    names = sorted(ends.index)
    for policy in ends.index:
        n = names.index(policy)
        line = table[table["policy"] == policy].copy()
        line["at"] = [places[value] for value in line[x]]
        line = line.sort_values("at")
        color, dashes = COLORS[n % len(COLORS)], _DASHES[n % len(_DASHES)]
        ax.fill_between(line["at"], line["min"], line["max"], color=color, alpha=0.12, linewidth=0)
        # Bands that lie on each other are told apart by their edges.
        for edge in ("min", "max"):
            ax.plot(line["at"], line[edge], color=color, linestyle=dashes, linewidth=0.6)
        ax.plot(line["at"], line["mean"], color=color, marker=_MARKS[n % len(_MARKS)],
                linestyle=dashes, label=policy)  # fmt: skip
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(_pictures.label(x))
    ax.set_ylabel(_pictures.SLOWDOWN)
    ax.set_title(f"task {name}")
    _legend(ax)
    return ax


def pareto(frame: Any, *, task: str | None = None, ax: Any = None) -> Any:
    """What isolation costs: a task's worst slowdown against what the other tasks lose.

    A mark is a case; the line joins those that no other betters in both.
    """
    table, name = _pictures.pareto(frame, task)
    ax = _axes(ax)
    for n, (policy, rows) in enumerate(table.groupby("policy", observed=True)):
        ax.scatter(rows["lost"], rows["slowdown"], s=30, color=COLORS[n % len(COLORS)],
                   marker=_MARKS[n % len(_MARKS)], label=policy, alpha=0.75,
                   edgecolors="white", linewidths=0.4)  # fmt: skip
    front = table[table["front"]].sort_values("lost")
    ax.plot(front["lost"], front["slowdown"], color="0.35", linewidth=1, zorder=0)
    ax.set_xlabel(_pictures.LOST)
    ax.set_ylabel(f"{_pictures.SLOWDOWN}, worst")
    ax.set_title(f"task {name}")
    _legend(ax)
    return ax


def heatmap(
    frame: Any, x: str, y: str, *, value: str = "slowdown", task: str | None = None,
    policy: str | None = None, ax: Any = None,
) -> Any:  # fmt: skip
    """The mean of a value over two columns, one policy's, or that of all rows.

    Dark is much; each field has its number, so that it is read in grey, too. A dash stands
    where nothing was measured.
    """
    frame, title = _pictures.rows(frame), []
    if value == "slowdown" or task is not None:
        frame, name = _pictures.of_task(frame, task)
        title.append(f"task {name}")
    for column in (x, y, value):
        _pictures.key(frame, column)
    if policy is not None:
        frame = _pictures.under(frame, policy)
        title.append(f"policy {policy}")
    table = frame.pivot_table(index=y, columns=x, values=value, aggfunc="mean", observed=True)
    table = table.reindex(_pictures.ordered(table.index), columns=_pictures.ordered(table.columns))
    ax = _axes(ax)
    image = ax.pcolormesh(table.to_numpy(), cmap="cividis_r", edgecolors="white", linewidth=1)
    middle = (image.norm.vmin + image.norm.vmax) / 2
    for (i, j), number in np.ndenumerate(table.to_numpy()):
        ax.text(j + 0.5, i + 0.5, "\u2013" if np.isnan(number) else f"{number:.2f}",
                ha="center", va="center", fontsize=8,
                color="white" if number > middle else "black")  # fmt: skip
    ax.set_xticks([j + 0.5 for j in range(table.shape[1])], [_short(v) for v in table.columns])
    ax.set_yticks([i + 0.5 for i in range(table.shape[0])], [_short(v) for v in table.index])
    if any(isinstance(name, str) for name in table.index):
        ax.invert_yaxis()
    ax.set_xlabel(_pictures.label(x))
    ax.set_ylabel(_pictures.label(y))
    ax.set_title(", ".join(title))
    ax.figure.colorbar(image, ax=ax, label=_pictures.SLOWDOWN if value == "slowdown" else value)
    return ax


def _legend(ax: Any) -> None:
    """Beside the axes, where it covers nothing."""
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _places(ax: Any, listed: list[Any]) -> dict[Any, Any]:
    """Numbers stand where they are, on a scale of factors where they span many; words in turn."""
    import numbers

    if all(isinstance(value, numbers.Number) for value in listed):
        if _pictures.by_factors(listed):
            ax.set_xscale("log", base=2)
            ax.minorticks_off()
        if len(listed) <= 10:
            ax.set_xticks(listed, [_short(v) for v in listed])
        return {value: value for value in listed}
    ax.set_xticks(range(len(listed)), [str(value) for value in listed])
    return {value: n for n, value in enumerate(listed)}


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
