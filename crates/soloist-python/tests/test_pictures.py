# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pictures: they show what the results say."""

import matplotlib
import pandas as pd
import pytest
import soloist

matplotlib.use("agg")


@pytest.fixture
def frame():
    """Three policies at two points; `c` costs the others half and isolates best."""
    rows = []
    for copies in (1, 2):
        for policy, slowdown, bandwidth in (("a", 2.0, 100.0), ("b", 1.5, 100.0), ("c", 1.0, 50.0)):
            for seed in (1, 2):
                base = {"id": str(copies), "machine": "m", "case": policy, "policy": policy,
                        "seed": seed, "n.copies": copies}  # fmt: skip
                rows.append(base | {"task": "v", "slowdown": slowdown * copies + seed * 0.1,
                                    "bandwidth": 10.0})  # fmt: skip
                rows.append(base | {"task": "n", "slowdown": None, "bandwidth": bandwidth})
    return pd.DataFrame(rows)


def test_slowdown_by_policy(frame):
    ax = soloist.plot.slowdown(frame, "n.copies")
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert list(lines["a"].get_ydata()) == pytest.approx([2.15, 4.15])
    # In grey, too: each has a mark and dashes of its own.
    shown = [lines[policy] for policy in "abc"]
    assert len({line.get_marker() for line in shown}) == 3
    assert len({line.get_linestyle() for line in shown}) == 3


def test_pareto(frame):
    from soloist._pictures import pareto

    table, task = pareto(frame, None)
    assert task == "v"
    one = table[table["id"] == "1"].set_index("policy")
    assert one["lost"].to_dict() == {"a": 0.0, "b": 0.0, "c": 50.0}
    # Each policy a point of its own: they are compared all the same.
    apart = frame.assign(id=frame["id"] + frame["policy"], policies=frame["policy"])
    assert sorted(pareto(apart, None)[0]["lost"]) == sorted(table["lost"])
    assert one["front"].to_dict() == {"a": False, "b": True, "c": True}
    assert soloist.plot.pareto(frame).get_xlabel().endswith("lost, %")


def test_heatmap(frame):
    ax = soloist.plot.heatmap(frame, "n.copies", "policy")
    assert [text.get_text() for text in ax.texts] == ["2.15", "4.15", "1.65", "3.15", "1.15", "2.15"]


def test_sizes_are_in_their_order(frame):
    """As words "1M" would be first."""
    wanted = ["512K", "1M", "4M", "16M"]
    given = [wanted[row // 2 * 3 % 4] for row in range(len(frame))]
    sizes = frame.assign(cache=given)
    for ax in (soloist.plot.slowdown(sizes, "cache"), soloist.plot.heatmap(sizes, "cache", "policy")):
        assert [text.get_text() for text in ax.get_xticklabels()] == wanted
    chart = soloist.chart.heatmap(sizes, "cache", "policy").to_dict()
    assert chart["layer"][0]["encoding"]["x"]["sort"] == wanted


def test_what_was_not_measured_is_a_dash(frame):
    some = frame[(frame["policy"] != "c") | (frame["n.copies"] == 1)]
    ax = soloist.plot.heatmap(some, "n.copies", "policy")
    assert [text.get_text() for text in ax.texts][-2:] == ["1.15", "\u2013"]


def test_tables_of_arrow_are_drawn_too(frame):
    import pyarrow as pa

    table = pa.Table.from_pandas(frame)
    assert soloist.plot.slowdown(table, "n.copies") and soloist.chart.pareto(table)
    assert soloist.plot.pareto(table) and soloist.plot.heatmap(table, "n.copies", "policy")
    with pytest.raises(soloist.SoloistError, match="a table of Arrow, not NoneType"):
        soloist.plot.slowdown(None, "x")


def test_the_legend_covers_nothing(frame):
    for ax in (soloist.plot.slowdown(frame, "n.copies"), soloist.plot.pareto(frame)):
        ax.figure.draw_without_rendering()
        assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
        whole = ax.figure.bbox
        for text in ax.get_legend().get_texts():
            assert text.get_window_extent().x1 <= whole.x1


def test_charts_of_altair(frame):
    for chart in (
        soloist.chart.slowdown(frame, "n.copies"),
        soloist.chart.pareto(frame),
        soloist.chart.heatmap(frame, "n.copies", "policy", policy="a"),
    ):
        assert chart.to_dict()["$schema"]


def test_what_is_not_there_is_told(frame):
    for draw, words in [
        (lambda: soloist.plot.slowdown(frame, "x"), "no column 'x'; there are: id"),
        (lambda: soloist.plot.slowdown(frame, "seed", task="w"), "no task 'w'.*there are: v"),
        (lambda: soloist.plot.pareto(frame[frame["task"] == "v"]), "is the only task"),
        (lambda: soloist.plot.heatmap(frame, "seed", "n.copies", policy="d"), "no policy 'd'.*: a, b, c"),
        (lambda: soloist.plot.slowdown(frame.assign(slowdown=None), "seed"), "alone=True"),
    ]:
        with pytest.raises(soloist.SoloistError, match=words):
            draw()
