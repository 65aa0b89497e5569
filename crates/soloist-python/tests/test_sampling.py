# SPDX-License-Identifier: MIT OR Apache-2.0
"""Points of a grid."""

import sys

import numpy as np
import pytest
import soloist
from soloist import between
from soloist.sampling import points


def test_all_combinations():
    grid = {"a": [1, 2], "b": range(2), "c": "x", "d": np.array([0.5]), "e": between(1, 5, step=2)}
    listed = points(grid)
    assert len(listed) == 2 * 2 * 3
    assert listed[0] == {"a": 1, "b": 0, "c": "x", "d": 0.5, "e": 1}
    assert points(listed) == listed


def test_between():
    assert between("1K", "3K", step="1K").all() == [1024, 2048, 3072]
    assert between(1, 4).all() == [1, 2, 3, 4]
    assert between(0.0, 1.0).at(0.25) == 0.25
    assert between("1M", "64M", log=True).at(0.5) == 8 << 20
    assert {between(1, 3).at(s) for s in (0, 0.34, 0.99)} == {1, 2, 3}
    for low, high, words in [
        (2, 1, "the lower"),
        ("a", 1, "a size such as"),
        (1, float("nan"), "expected finite numbers"),
        (1, 10**400, "expected finite numbers"),
        (1.5, 10**400, "expected finite numbers"),
        (-1e308, 1e308, "too far apart"),
    ]:
        with pytest.raises(soloist.SoloistError, match=words):
            between(low, high)
    with pytest.raises(soloist.SoloistError, match="above 0"):
        between(0, 1, log=True)
    with pytest.raises(soloist.SoloistError, match="too far apart"):
        between(1e-300, 1e300, log=True)
    with pytest.raises(soloist.SoloistError, match="log='false': expected true or false"):
        between(1, 2, log="false")
    for step in (0, float("nan"), float("inf")):
        with pytest.raises(soloist.SoloistError, match="a finite number above 0"):
            between(1, 2, step=step)
    with pytest.raises(soloist.SoloistError, match="have no end"):
        between(0.0, 1.0).all()
    with pytest.raises(soloist.SoloistError, match="give a larger `step`"):
        points({"a.bytes": between("8M", "64G", log=True)})


def test_a_latin_hypercube_is_spread_evenly():
    listed = soloist.latin_hypercube(50, {"x": (0.0, 1.0), "n": [1, 2], "m": (1, 50)}, seed=3)
    parts = sorted(int(point["x"] * 50) for point in listed)
    assert parts == list(range(50))
    assert sorted(point["m"] for point in listed) == list(range(1, 51))
    assert [p["n"] for p in listed].count(1) == 25
    assert listed == soloist.latin_hypercube(50, {"x": (0.0, 1.0), "n": [1, 2], "m": (1, 50)}, seed=3)


def test_what_scipy_is_needed_for_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(soloist.SoloistError, match=r"pip install 'soloist\[sweep\]'"):
        soloist.latin_hypercube(2, {"x": [1]})


def test_values_that_can_be_gone_through_once_are_a_list():
    for method in (soloist.random, soloist.latin_hypercube):
        listed = method(4, {"x": [1, 2], "y": ("1K", "2K")})
        assert method(4, {"x": iter([1, 2]), "y": ("1K", "2K")}) == listed


def test_random_points_are_the_seeds():
    space = {"x": (0.0, 1.0), "machine": ["a", "b"]}
    assert soloist.random(5, space) == soloist.random(5, space) != soloist.random(5, space, seed=2)
    with pytest.raises(soloist.SoloistError, match="at least 1"):
        soloist.random(0, space)
    for n, wrong, words in [
        ("3", space, "n='3': expected a whole number"),
        (3, None, "space=None: expected a dictionary"),
        (3, {"a": []}, r"a: \[\]: expected a list of values"),
        (3, {"a": 5}, "a: 5: expected a list of values"),
        (3, {"a": "b"}, "a: 'b': expected a list of values"),
        (3, {1: [2]}, "the grid's key 1: expected a text"),
    ]:
        for draw in (soloist.random, soloist.latin_hypercube):
            with pytest.raises(soloist.SoloistError, match=words):
                draw(n, wrong)
    with pytest.raises(soloist.SoloistError, match="seed=-1"):
        soloist.random(3, space, seed=-1)
    with pytest.raises(soloist.SoloistError, match="finite"):
        between(1, float("inf"))
