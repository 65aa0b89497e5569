# SPDX-License-Identifier: MIT OR Apache-2.0
"""What pictures show, whichever library draws them."""

from typing import Any

from . import lab
from ._source import told
from .sampling import size

#: Okabe and Ito's colours, which the colour-blind tell apart; yellow is too light for print.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]

#: Columns that say nothing of the point that a case is at.
_MEASURED = {"id", "experiment", "case", "policy", "policies", "seed", "task", "cpu", "alone",
             "slowdown", *lab.metrics()}  # fmt: skip

#: What a task lost: its time over its time alone.
SLOWDOWN = "slowdown (time / time alone)"
LOST = "throughput of the others that is lost, %"


def of_task(frame: Any, task: str | None) -> tuple[Any, str]:
    """The rows of a task: the one that is named, or the first that was run alone."""
    key(frame, "slowdown")
    timed = frame[frame["slowdown"].notna()]
    if timed.empty:
        raise told("no task has a slowdown: run with alone=True")
    name = str(timed["task"].iloc[0]) if task is None else task
    of = timed[timed["task"] == name]
    if of.empty:
        names = ", ".join(sorted(set(timed["task"])))
        raise told(f"no task {name!r} with a slowdown; there are: {names}")
    return of, name


def rows(frame: Any) -> Any:
    """A DataFrame of pandas, of one or of a table of Arrow."""
    if hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    if not hasattr(frame, "groupby"):
        raise told(f"expected a DataFrame or a table of Arrow, not {type(frame).__name__}")
    return frame


def label(column: str) -> str:
    """A column as an axis names it."""
    return column.removeprefix("label.")


def ordered(values: Any) -> list[Any]:
    """Values as an axis has them: sizes such as "512K" and "1M" by size, not as words."""
    listed = list(values)
    sizes = [size(value) if isinstance(value, str) else None for value in listed]
    if listed and None not in sizes:
        return [value for _, value in sorted(zip(sizes, listed, strict=True))]
    return sorted(listed)


def by_factors(values: list[Any]) -> bool:
    """Numbers that span many factors want an axis of factors."""
    return len(values) > 2 and values[0] > 0 and values[-1] / values[0] >= 8


def under(frame: Any, policy: str) -> Any:
    """The rows of a policy."""
    of = frame[frame["policy"] == policy]
    if of.empty:
        names = ", ".join(sorted(set(frame["policy"])))
        raise told(f"no policy {policy!r}; there are: {names}")
    return of


def key(frame: Any, name: str) -> str:
    """A column of the results."""
    if name not in frame.columns:
        raise told(f"no column {name!r}; there are: {', '.join(frame.columns)}")
    return name


def pareto(frame: Any, task: str | None) -> tuple[Any, str]:
    """For each case: the task's worst slowdown, and what the other tasks lost.

    Lost is measured against the best that any policy gives the others at the same point.
    """
    frame = rows(frame)
    of, name = of_task(frame, task)
    others = frame[frame["task"] != name]
    if others.empty:
        raise told(f"{name!r} is the only task: nothing else loses throughput")
    at = [column for column in frame.columns if column not in _MEASURED]
    case = [*at, *(["id"] if "id" in frame.columns else []), "case", "policy"]
    worst = of.groupby(case, observed=True, dropna=False)["slowdown"].max()
    # A mean over seeds of what all others move together.
    moved = others.groupby([*case, "seed"], observed=True, dropna=False)["bandwidth"].sum()
    moved = moved.groupby(case, observed=True, dropna=False).mean()
    table = worst.to_frame().join(moved).reset_index()
    table = table.dropna(subset=["slowdown", "bandwidth"])
    best = table.groupby(at, observed=True, dropna=False)["bandwidth"].transform("max")
    table["lost"] = 100 * (1 - table["bandwidth"] / best)
    table["front"] = [
        not ((table["slowdown"] <= s) & (table["lost"] <= lost)
             & ((table["slowdown"] < s) | (table["lost"] < lost))).any()
        for s, lost in zip(table["slowdown"], table["lost"], strict=True)
    ]  # fmt: skip
    return table, name
