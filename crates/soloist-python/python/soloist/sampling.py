# SPDX-License-Identifier: MIT OR Apache-2.0
"""The points of a sweep: all combinations, by chance, or a Latin hypercube."""

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._source import flag, told, whole

Point = dict[str, Any]
Grid = Mapping[str, Any] | Iterable[Mapping[str, Any]]

#: Values of one key of a grid: bytes without a step are as many as memory has none for.
_MOST = 1_000_000
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Between:
    """Values from `low` to `high`, as `between` makes them."""

    low: float
    high: float
    log: bool
    step: float | None
    whole: bool

    def at(self, share: float) -> float | int:
        """The value at a share of the way, from 0 to below 1."""
        if self.step is not None or self.whole:
            step = self.step or 1
            steps = math.floor((self.high - self.low) / step + 1e-9) + 1
            if self.log:
                value = self._on_scale(share)
                n = min(round((value - self.low) / step), steps - 1)
            else:
                n = min(int(share * steps), steps - 1)
            value = self.low + n * step
            return int(value) if self.whole else value
        return self._on_scale(share)

    def _on_scale(self, share: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share

    def all(self) -> list[float | int]:
        """Every value, of one that has steps."""
        if self.step is None and not self.whole:
            raise told("values without steps have no end: give `step`, or sample them")
        step = self.step or 1
        steps = math.floor((self.high - self.low) / step + 1e-9) + 1
        if steps > _MOST:
            raise told(f"{steps} values from {self.low} to {self.high}, {step} apart: give a larger "
                       "`step`, or sample them")  # fmt: skip
        values = [self.low + n * step for n in range(steps)]
        return [int(value) for value in values] if self.whole else values


def between(
    low: float | str, high: float | str, *, log: bool = False, step: float | str | None = None
) -> Between:
    """Values from `low` to `high`, both included.

    Whole numbers and sizes such as ``"64M"`` (bytes) give whole numbers. With `log` the
    logarithm is evenly spread, for what matters by factors. `step` is the distance between
    values that can be, counted from `low`.
    """
    ends = [_number(low), _number(high)]
    width = None if step is None else _number(step)
    whole = all(isinstance(n, int) for n in [*ends, width] if n is not None)
    log = flag("log", log)
    # That is false of no number too.
    if not all(abs(end) <= sys.float_info.max for end in ends):
        raise told(f"between {low!r} and {high!r}: expected finite numbers")
    if not ends[0] < ends[1]:
        raise told(f"between {low!r} and {high!r}: the first must be the lower")
    if log and ends[0] <= 0:
        raise told(f"between {low!r} and {high!r}: log wants values above 0")
    if (ends[1] / ends[0] if log else ends[1] - ends[0]) > sys.float_info.max:
        raise told(f"between {low!r} and {high!r}: too far apart")
    if width is not None and not 0 < width <= sys.float_info.max:
        raise told(f"step {step!r}: expected a finite number above 0")
    return Between(ends[0], ends[1], log, width, whole)


def _number(value: Any) -> float | int:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    number = size(str(value))
    if number is None:
        raise told(f"{value!r}: expected a number, or a size such as '64M'")
    return number


def size(text: str) -> int | None:
    """The bytes of a size such as ``"64M"``; None where it is none."""
    text = text.strip()
    try:
        if text[-1:].upper() in _SUFFIXES:
            return int(text[:-1]) * _SUFFIXES[text[-1].upper()]
        return int(text)
    except ValueError:
        return None


def points(grid: Grid) -> list[Point]:
    """All points of a grid: combinations of a mapping's lists, or the points of a list."""
    if not isinstance(grid, Mapping):
        many = isinstance(grid, Iterable) and not isinstance(grid, (str, bytes))
        listed: list[Any] = list(grid) if many else [grid]
        for point in listed:
            if not isinstance(point, Mapping):
                raise told(f"the grid: {point!r} is no point; expected a dictionary of keys and values, "
                           "or a list of such points")  # fmt: skip
            _keys(point)
        if not listed:
            raise told("the grid has no point")
        return [dict(point) for point in listed]
    _keys(grid)
    axes = []
    for key, values in grid.items():
        if isinstance(values, Between):
            values = values.all()
        elif isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            values = [values]
        elif hasattr(values, "tolist"):
            values = values.tolist()
        axes.append([(key, value) for value in values])
        if not axes[-1]:
            raise told(f"{key}: no values")
    return [dict(point) for point in itertools.product(*axes)]


def _keys(point: Mapping[Any, Any]) -> None:
    for key in point:
        if not isinstance(key, str):
            raise told(f"the grid's key {key!r}: expected a text, such as 'machine'")


def random(n: int, space: Mapping[str, Any], *, seed: int = 1) -> list[Point]:
    """`n` points of `space`, each drawn by itself.

    The values of `space` are lists of choices, or `between`; a pair ``(low, high)`` is
    ``between(low, high)``. The same seed gives the same points.
    """
    import numpy as np

    space = _checked(n, space, seed)
    return _at(np.random.default_rng(seed).random((n, len(space))).tolist(), space)


def latin_hypercube(n: int, space: Mapping[str, Any], *, seed: int = 1) -> list[Point]:
    """`n` points of `space`, of which each key's values are spread evenly.

    As `random`, by ``scipy.stats.qmc.LatinHypercube``: each key's range is cut into `n`
    parts, and each part has one point.
    """
    import numpy as np

    try:
        from scipy.stats import qmc
    except ImportError:
        raise told("latin_hypercube needs scipy: pip install 'soloist[sweep]'") from None
    space = _checked(n, space, seed)
    sampler = qmc.LatinHypercube(len(space), seed=np.random.default_rng(seed))
    return _at(sampler.random(n).tolist(), space)


def _checked(n: int, space: Mapping[str, Any], seed: int) -> dict[str, Between | list[Any]]:
    """The space, each key's values of which can be gone through again and again."""
    if whole("n", n, -1 << 31, 1 << 31) < 1:
        raise told(f"{n} points: expected at least 1")
    whole("seed", seed, 0, 1 << 64)
    if not isinstance(space, Mapping) or not space:
        raise told(f"space={space!r}: expected a dictionary of keys and their values")
    _keys(space)
    return {key: _choices(key, choices) for key, choices in space.items()}


def _choices(key: str, given: Any) -> Between | list[Any]:
    if isinstance(given, tuple) and len(given) == 2:
        return between(*given)
    if isinstance(given, Between):
        return given
    listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    choices = list(given) if listed else []
    if not choices:
        raise told(f"{key}: {given!r}: expected a list of values, or between(low, high)")
    return choices


def _at(
    shares: Sequence[Sequence[float]], space: Mapping[str, Between | list[Any]]
) -> list[Point]:
    def value(share: float, choices: Between | list[Any]) -> Any:
        if isinstance(choices, Between):
            return choices.at(share)
        return choices[min(int(share * len(choices)), len(choices) - 1)]

    return [
        {key: value(share, choices) for share, (key, choices) in zip(row, space.items(), strict=True)}
        for row in shares
    ]
