# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures of results with matplotlib, for print: each returns the axes it drew on.

Lines differ by colour, mark and dashes, so that they can be told apart in grey.
"""

from collections.abc import Iterable
from typing import Any

from . import _pictures
from ._pictures import COLORS

_MARKS = ["o", "s", "^", "D", "v", "P", "X"]
_DASHES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]


def slowdown(frame: Any, x: str, *, task: str | None = None, ax: Any = None) -> Any:
    """A task's slowdown by policy over a column; the band is from the least to the greatest.

    `frame` is a DataFrame of `lab.run` or a sweep; `task` is the first with a slowdown unless
    it is named.
    """
    rows, name = _pictures.of_task(frame, task)
    _pictures.key(rows, x)
    ax = _axes(ax)
    of = rows.groupby(["policy", x], observed=True, sort=True)["slowdown"]
    table = of.agg(["mean", "min", "max"]).reset_index()
    # As the legend lists them, so the lines end.
    ends = table.groupby("policy", observed=True)["mean"].last().sort_values(ascending=False)
    places = _places(ax, table[x].unique())
    names = sorted(ends.index)
    for policy in ends.index:
        n = names.index(policy)
        line = table[table["policy"] == policy]
        at = [places[value] for value in line[x]]
        color = COLORS[n % len(COLORS)]
        ax.fill_between(at, line["min"], line["max"], color=color, alpha=0.15, linewidth=0)
        ax.plot(at, line["mean"], color=color, marker=_MARKS[n % len(_MARKS)],
                linestyle=_DASHES[n % len(_DASHES)], label=policy)  # fmt: skip
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(x)
    ax.set_ylabel(_pictures.SLOWDOWN)
    ax.set_title(name)
    ax.legend(frameon=False)
    return ax


def pareto(frame: Any, *, task: str | None = None, ax: Any = None) -> Any:
    """What isolation costs: a task's worst slowdown against what the other tasks lose.

    A mark is a case; the line joins those that no other betters in both.
    """
    table, name = _pictures.pareto(frame, task)
    ax = _axes(ax)
    for n, (policy, rows) in enumerate(table.groupby("policy", observed=True)):
        ax.scatter(rows["lost"], rows["slowdown"], s=26, color=COLORS[n % len(COLORS)],
                   marker=_MARKS[n % len(_MARKS)], label=policy)  # fmt: skip
    front = table[table["front"]].sort_values("lost")
    ax.plot(front["lost"], front["slowdown"], color="0.35", linewidth=1, zorder=0)
    ax.set_xlabel(_pictures.LOST)
    ax.set_ylabel(f"{_pictures.SLOWDOWN}, worst")
    ax.set_title(name)
    ax.legend(frameon=False)
    return ax


def heatmap(
    frame: Any, x: str, y: str, *, value: str = "slowdown", task: str | None = None,
    policy: str | None = None, ax: Any = None,
) -> Any:  # fmt: skip
    """The mean of a value over two columns, one policy's, or that of all rows.

    Dark is much; each field has its number, so that it is read in grey, too.
    """
    if value == "slowdown" or task is not None:
        frame, name = _pictures.of_task(frame, task)
    else:
        name = ""
    for column in (x, y, value):
        _pictures.key(frame, column)
    if policy is not None:
        frame = frame[frame["policy"] == policy]
    table = frame.pivot_table(index=y, columns=x, values=value, aggfunc="mean", observed=True)
    ax = _axes(ax)
    image = ax.pcolormesh(table.to_numpy(), cmap="cividis_r", edgecolors="white", linewidth=1)
    middle = (image.norm.vmin + image.norm.vmax) / 2
    for (i, j), number in _fields(table.to_numpy()):
        ax.text(j + 0.5, i + 0.5, f"{number:.2f}", ha="center", va="center", fontsize=8,
                color="white" if number > middle else "black")  # fmt: skip
    ax.set_xticks([j + 0.5 for j in range(table.shape[1])], [_short(v) for v in table.columns])
    ax.set_yticks([i + 0.5 for i in range(table.shape[0])], [_short(v) for v in table.index])
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(" ".join(part for part in (name, f"under {policy}" if policy else "") if part))
    ax.figure.colorbar(image, ax=ax, label=_pictures.SLOWDOWN if value == "slowdown" else value)
    return ax


def _fields(array: Any) -> Iterable[tuple[tuple[int, int], float]]:
    import numpy as np

    return (((i, j), v) for (i, j), v in np.ndenumerate(array) if not np.isnan(v))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _places(ax: Any, values: Any) -> dict[Any, Any]:
    """Numbers stand where they are, on a scale of factors where they span many; words in turn."""
    import numbers

    listed = list(values)
    if all(isinstance(value, numbers.Number) for value in listed):
        low, high = min(listed), max(listed)
        if len(listed) > 2 and low > 0 and high / low >= 8:
            ax.set_xscale("log", base=2)
            ax.set_xticks(sorted(listed), [_short(v) for v in sorted(listed)])
            ax.minorticks_off()
        elif len(listed) <= 10:
            ax.set_xticks(sorted(listed), [_short(v) for v in sorted(listed)])
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
