# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same pictures with Vega-Altair, for notebooks: the mouse shows what a mark is of."""

from typing import Any

from . import _pictures
from ._pictures import COLORS


def slowdown(frame: Any, x: str, *, task: str | None = None) -> Any:
    """A task's slowdown by policy over a column, as `plot.slowdown`."""
    import altair as alt

    rows, name = _pictures.of_task(_pictures.rows(frame), task)
    _pictures.key(rows, x)
    of = rows.groupby(["policy", x], observed=True)["slowdown"]
    table = _plain(of.agg(["mean", "min", "max"]).reset_index(), x)
    base = alt.Chart(table, title=f"task {name}").encode(
        x=_axis(alt, table, "x", x), tooltip=["policy", "x", "mean"]
    )
    # The marks' legend is enough.
    bare = _policies(alt).legend(None)
    band = base.mark_area(opacity=0.15).encode(y="min:Q", y2="max:Q", color=bare)
    mean = alt.Y("mean:Q", title=_pictures.SLOWDOWN, scale=alt.Scale(zero=False))
    dashes = alt.StrokeDash("policy:N").legend(None)
    lines = base.mark_line().encode(y=mean, strokeDash=dashes, color=bare)
    marks = base.mark_point(filled=True, size=50, opacity=1).encode(
        y=mean, color=_policies(alt), shape=alt.Shape("policy:N", title="policy")
    )
    return (band + lines + marks).resolve_legend(color="independent", shape="independent")


def pareto(frame: Any, *, task: str | None = None) -> Any:
    """What isolation costs, as `plot.pareto`."""
    import altair as alt

    table, name = _pictures.pareto(frame, task)
    axes = {
        "x": alt.X("lost:Q", title=_pictures.LOST),
        "y": alt.Y("slowdown:Q", title=f"{_pictures.SLOWDOWN}, worst", scale=alt.Scale(zero=False)),
    }
    marks = alt.Chart(table, title=f"task {name}").mark_point(filled=True, size=50).encode(
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

    frame, title = _pictures.rows(frame), []
    if value == "slowdown" or task is not None:
        frame, name = _pictures.of_task(frame, task)
        title.append(f"task {name}")
    for column in (x, y, value):
        _pictures.key(frame, column)
    if policy is not None:
        frame = _pictures.under(frame, policy)
        title.append(f"policy {policy}")
    table = frame.groupby([x, y], observed=True)[value].mean().reset_index()
    table.columns = ["x", "y", "value"]
    base = alt.Chart(table, title=", ".join(title), width=alt.Step(48), height=alt.Step(28))
    columns, rows = (_pictures.ordered(table[axis].unique()) for axis in "xy")
    if not any(isinstance(name, str) for name in rows):
        rows.reverse()
    base = base.encode(
        x=alt.X("x:O", title=_pictures.label(x), sort=columns, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:O", title=_pictures.label(y), sort=rows),
    )
    unit = _pictures.SLOWDOWN if value == "slowdown" else value
    shade = alt.Color("value:Q", title=unit, scale=alt.Scale(scheme="cividis", reverse=True))
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

    listed = _pictures.ordered(table[column].unique())
    title = _pictures.label(title)
    if not pandas.api.types.is_numeric_dtype(table[column]):
        level = alt.Axis(labelAngle=0)
        return alt.X(column, type="ordinal", title=title, sort=listed, axis=level)
    # Few values are marked themselves.
    marks = alt.Axis(values=listed, format="~r") if len(listed) <= 10 else alt.Axis()
    if not _pictures.by_factors(listed):
        return alt.X(column, type="quantitative", title=title, axis=marks)
    return alt.X(column, type="quantitative", title=title, axis=marks,
                 scale=alt.Scale(type="log", base=2))  # fmt: skip
