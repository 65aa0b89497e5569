# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same pictures with Vega-Altair, for notebooks: the mouse shows what a mark is of."""

from typing import Any

from . import _pictures
from ._pictures import COLORS


def slowdown(frame: Any, x: str, *, task: str | None = None) -> Any:
    """A task's slowdown by policy over a column, as `plot.slowdown`."""
    import altair as alt

    rows, name = _pictures.of_task(frame, task)
    _pictures.key(rows, x)
    of = rows.groupby(["policy", x], observed=True)["slowdown"]
    table = _plain(of.agg(["mean", "min", "max"]).reset_index(), x)
    base = alt.Chart(table, title=name).encode(
        x=_axis(alt, table, "x", x), color=_policies(alt), tooltip=["policy", "x", "mean"]
    )
    band = base.mark_area(opacity=0.15).encode(y="min:Q", y2="max:Q")
    mean = alt.Y("mean:Q", title=_pictures.SLOWDOWN, scale=alt.Scale(zero=False))
    dashes = alt.StrokeDash("policy:N", title="policy")
    lines = base.mark_line().encode(y=mean, strokeDash=dashes)
    marks = base.mark_point(filled=True, size=50).encode(
        y=mean, shape=alt.Shape("policy:N", title="policy")
    )
    return band + lines + marks


def pareto(frame: Any, *, task: str | None = None) -> Any:
    """What isolation costs, as `plot.pareto`."""
    import altair as alt

    table, name = _pictures.pareto(frame, task)
    axes = {
        "x": alt.X("lost:Q", title=_pictures.LOST),
        "y": alt.Y("slowdown:Q", title=f"{_pictures.SLOWDOWN}, worst", scale=alt.Scale(zero=False)),
    }
    marks = alt.Chart(table, title=name).mark_point(filled=True, size=50).encode(
        **axes, color=_policies(alt), shape=alt.Shape("policy:N", title="policy"),
        tooltip=["policy", "case", "slowdown", "lost"],
    )  # fmt: skip
    front = alt.Chart(table[table["front"]]).mark_line(color="#595959", strokeWidth=1)
    return front.encode(**axes) + marks


def heatmap(
    frame: Any, x: str, y: str, *, value: str = "slowdown", task: str | None = None,
    policy: str | None = None,
) -> Any:  # fmt: skip
    """The mean of a value over two columns, as `plot.heatmap`."""
    import altair as alt

    name = ""
    if value == "slowdown" or task is not None:
        frame, name = _pictures.of_task(frame, task)
    for column in (x, y, value):
        _pictures.key(frame, column)
    if policy is not None:
        frame = frame[frame["policy"] == policy]
    table = frame.groupby([x, y], observed=True)[value].mean().reset_index()
    table.columns = ["x", "y", "value"]
    base = alt.Chart(table, title=" ".join([name, f"under {policy}" if policy else ""]).strip())
    base = base.encode(x=alt.X("x:O", title=x), y=alt.Y("y:O", title=y, sort="descending"))
    shade = alt.Color("value:Q", title=value, scale=alt.Scale(scheme="cividis", reverse=True))
    middle = (table["value"].min() + table["value"].max()) / 2
    dark = alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("black"))
    words = base.mark_text().encode(text=alt.Text("value:Q", format=".2f"), color=dark)
    return base.mark_rect(stroke="white").encode(color=shade) + words


def _policies(alt: Any) -> Any:
    return alt.Color("policy:N", title="policy", scale=alt.Scale(range=COLORS))


def _plain(table: Any, x: str) -> Any:
    """With a column whose name Vega does not take for a path."""
    return table.rename(columns={x: "x"})


def _axis(alt: Any, table: Any, column: str, title: str) -> Any:
    import pandas

    numeric = pandas.api.types.is_numeric_dtype(table[column])
    return alt.X(column, type="quantitative" if numeric else "ordinal", title=title)
