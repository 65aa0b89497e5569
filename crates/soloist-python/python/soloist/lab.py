# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios: tasks under policies on a modelled machine (docs/reference/lab.md)."""

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from . import _native
from ._source import Source, flag, path, scenario_table, scenario_text, texts, told, toml_value, whole

Progress = bool | Callable[[int, int], object] | None

_UNITS = dict(_native.metrics()) | {"alone": "ms", "slowdown": ""}


def run(
    scenario: Source,
    policies: Sequence[str] | None = None,
    seeds: int | None = None,
    *,
    seed: int = 1,
    machine: str | os.PathLike[str] | None = None,
    model: Mapping[str, Any] | None = None,
    small: bool = False,
    alone: bool = True,
    threads: int = 0,
    progress: Progress = None,
) -> pa.Table:
    """Runs a scenario; what was measured, a row for each task of each run.

    Parameters
    ----------
    scenario
        A file, the name of a built-in experiment (`names`), or the same as a dictionary.
    policies
        Instead of the scenario's; `policies` lists them.
    seeds
        Number of seeds instead of the scenario's ``repeats``; `seed` is the first.
    machine
        Instead of the scenario's: a name or the path of a machine file.
    model
        Changes of the machine's ``[memory]``: ``{"controller.bank_queue": 16}``.
    small
        The small version: less work, fewer seeds.
    alone
        Also runs each task by itself under Linux, for the columns ``alone`` and ``slowdown``;
        this and the accounting of waits take about twice the time.
    threads
        Threads of the model; 0: one for each core.
    progress
        A bar (True; None: on terminals and in notebooks), or a function that is called with
        the runs done and all runs.

    Returns
    -------
    A table of Arrow (``.to_pandas()``, ``polars.from_arrow``) with the columns experiment,
    machine, case, policy, ``sweep.NAME`` for each sweep, seed, task, cpu, the metrics of
    `metrics`, ``alone`` (the task's mean time by itself, ms) and ``slowdown`` (time over
    ``alone``). Metrics that a task has not are null. A column's unit is in its metadata.

    Ctrl-C returns at once; the runs that had begun end in the background.
    """
    given = _order(locals())
    with _Bar(progress) as bar:
        return table(_native.lab_run(given, bar))


def check(scenario: Source, **options: Any) -> int:
    """Whether a scenario would run, with the options of `run`; how many cases it has."""
    given = inspect.signature(run).bind(scenario, **options)
    given.apply_defaults()
    return _native.lab_check(_order(given.arguments))


def load(scenario: Source) -> dict[str, Any]:
    """A scenario as a dictionary, claims and all; recordings are absolute paths."""
    return scenario_table(scenario)


def names() -> list[str]:
    """Names of the experiments that are built in."""
    return _native.lab_names()


def policies() -> dict[str, str]:
    """The policies, and what each is in a line."""
    return dict(_native.lab_policies())


def metrics() -> dict[str, str]:
    """What is measured, and its unit."""
    return dict(_native.metrics())


def _order(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the native module is asked for, of the arguments of `run`."""
    text, file, made = scenario_text(given["scenario"])
    machine, model = given["machine"], given["model"] or {}
    if not isinstance(model, Mapping) or not all(isinstance(key, str) for key in model):
        raise told(f"model={model!r}: expected a dictionary of keys and values")
    return {
        "text": text,
        "file": file,
        "made": made,
        "machine": None if machine is None else path("machine", machine),
        "model": [(key, toml_value(f"model.{key}", value)) for key, value in model.items()],
        **checked({name: given[name] for name in _CHECKS}),
    }


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `run` that sweeps have too; what is wrong with one is told."""
    return {name: _CHECKS[name](name, given) for name, given in options.items()}


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "policies": lambda what, given: None if given is None else texts(what, given),
    "seeds": lambda what, given: None if given is None else whole(what, given, 1, 1 << 32),
    "seed": lambda what, given: whole(what, given, 0, 1 << 64),
    "small": flag,
    "alone": flag,
    "threads": lambda what, given: whole(what, given, 0, 1 << 12),
}


def table(columns: dict[str, list[Any]]) -> pa.Table:
    """The columns as Arrow has them."""
    texts = ("experiment", "machine", "case", "policy", "task")
    fields, arrays = [], []
    for name, values in columns.items():
        if name in texts:
            kind: pa.DataType = pa.string()
        elif name in _UNITS:
            kind = pa.float64()
        else:
            kind = pa.uint32() if name == "cpu" else pa.uint64()
        unit = _UNITS.get(name)
        metadata = {b"unit": unit.encode()} if unit else None
        fields.append(pa.field(name, kind, metadata=metadata))
        arrays.append(pa.array(values, kind))
    return pa.table(arrays, schema=pa.schema(fields))


class _Bar:
    """A bar of tqdm, a function of the user's, or nothing."""

    def __init__(self, progress: Progress) -> None:
        self._call = progress if callable(progress) else None
        self._bar: Any = None
        if self._call is None and progress not in (None, True, False):
            raise told(f"progress={progress!r}: expected True, False or a function")
        wanted = progress is True or (progress is None and _watched())
        if self._call is None and wanted:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=None, unit="run", file=sys.stderr, leave=False)
            self._call = self._step

    def _step(self, done: int, all: int) -> None:
        self._bar.total = all
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> Callable[[int, int], object] | None:
        return self._call

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _watched() -> bool:
    """Somebody sees a bar: a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
