# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases of a sweep: a scenario with some keys otherwise; and running them, which happens
on workers."""

import copy
import difflib
import hashlib
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import _native, lab
from ._native import SoloistError
from ._source import canonical, is_path, parsed, plain, read, told, toml
from .sampling import Point
from .store import concat

#: Keys of a scenario that a point may name whole.
_WHOLE = ("policies", "regulator", "sweep", "task")
#: Keys of [experiment] that need no `experiment.` before them.
_SHORT = ("used", "scatter", "exhausted")
_TABLES = ("experiment", "model", "regulator")


@dataclass(frozen=True)
class Base:
    """What all cases of a sweep have in common; sent to workers."""

    scenario: dict[str, Any]
    options: dict[str, Any]
    #: Text and name of machine files that workers may not have, by the name that points use.
    machines: dict[str, tuple[str, str]]
    version: str


def apply(base: Base, point: Point) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The scenario at a point, and its machine where that is changed.

    Keys are those of a scenario file: ``experiment.used``, ``model.controller.bank_queue``,
    ``TASK.bytes`` (all tasks of that name), ``policies``; ``machine`` is the machine's name
    or file, and ``machine.KEY`` a key of its file. ``label.KEY`` is a column, and no more.
    """
    scenario = copy.deepcopy(base.scenario)
    changes = {}
    for key, value in point.items():
        if key.startswith("label."):
            continue
        if key.startswith("machine."):
            changes[key.removeprefix("machine.")] = value
        else:
            _set(scenario, key, value)
    if not changes:
        return scenario, None
    machine = machine_table(base, str(scenario.get("experiment", {}).get("machine", "")))
    for key, value in changes.items():
        _put(machine, key.split("."), value)
    return scenario, machine


def machine_table(base: Base, name: str) -> dict[str, Any]:
    """A machine's file as a dictionary."""
    return parsed(*(base.machines.get(name) or _native.machine_text(name)))


def _set(scenario: dict[str, Any], key: str, value: Any) -> None:
    first, _, rest = key.partition(".")
    if key in _WHOLE:
        scenario[key] = value
    elif key == "machine" or key in _SHORT:
        scenario.setdefault("experiment", {})[key] = value
    elif first in _TABLES and rest:
        _put(scenario, key.split("."), value)
    else:
        _set_task(scenario, key, value)


def _set_task(scenario: dict[str, Any], key: str, value: Any) -> None:
    name, _, field = key.removeprefix("task.").partition(".")
    tasks = _tasks(scenario)
    named = [task for task in tasks if task.get("name") == name]
    if not named or not field:
        names = [str(task.get("name")) for task in tasks]
        known = ["machine", "machine.KEY", "experiment.KEY", "model.KEY", "regulator.KEY",
                 "policies", *(f"{n}.KEY" for n in dict.fromkeys(names))]  # fmt: skip
        near = difflib.get_close_matches(name, names, 1)
        meant = f" (did you mean {near[0]}.{field}?)" if near and field else ""
        raise of_grid(key, f"nothing has that name{meant}; there are: {', '.join(known)}")
    for task in named:
        _put(task, field.split("."), value)


def of_grid(key: str, why: str) -> SoloistError:
    """A key that a point can't set: who read the grid from a file names that."""
    error = told(f"the grid's key {key!r}: {why}")
    error.key = key
    return error


def _tasks(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """The tasks; a point may have put anything there, which the case itself tells."""
    listed = scenario.get("task")
    return [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []


def _put(table: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        inner = table.setdefault(step, {})
        if not isinstance(inner, dict):
            raise of_grid(".".join(path), f"{step!r} is no table")
        table = inner
    table[path[-1]] = value


def identity(base: Base, point: Point, recordings: dict[str, str]) -> str:
    """The hash of all that a case's rows depend on."""
    scenario, machine = apply(base, point)
    name = str(scenario.get("experiment", {}).get("machine", ""))
    if machine is not None:
        of: Any = machine
    elif name in base.machines:
        of = base.machines[name][0]
    else:
        of = name
    recorded = [
        _hash_of(task["recording"], recordings)
        for task in _tasks(scenario)
        if isinstance(task.get("recording"), str)
    ]
    # The title and notes change no figure.
    whole = [scenario, of, recorded, base.options, base.version]
    # A label changes no figure either, but is a column of the rows that are kept.
    labels = {key: value for key, value in point.items() if key.startswith("label.")}
    if labels:
        whole.append(labels)
    return hashlib.sha256(canonical(whole).encode()).hexdigest()[:32]


def _hash_of(directory: str, known: dict[str, str]) -> str:
    """Of a recording's content; empty where there is none, which the worker tells."""
    if directory not in known:
        digest = hashlib.sha256()
        for path in sorted(Path(directory).glob("*")):
            if path.is_file():
                digest.update(path.name.encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        known[directory] = digest.hexdigest()
    return known[directory]


def local_machines(names: set[str]) -> dict[str, tuple[str, str]]:
    """Text and file of the machines that are files here, which workers may not have."""
    found = {}
    for name in names:
        try:
            if is_path(name):
                found[name] = (read(name), name)
            else:
                text, file = _native.machine_text(name)
                if file != f"machines/{name}.toml":
                    found[name] = (text, file)
        except SoloistError:
            # The case that names it tells.
            continue
    return found


@dataclass
class Group:
    """What came of a group of cases."""

    table: pa.Table | None
    #: Id and words of each case that could not be run.
    errors: list[tuple[str, str]]
    #: Seconds that the cases took, without Dask.
    seconds: float


def run_group(base: Base, cases: list[tuple[str, Point]]) -> Group:
    """Runs cases one after the other; on a worker."""
    from . import version

    if version() != base.version:
        raise told(
            f"this worker has soloist {version()}, the sweep is of {base.version}: install the "
            "same wheel on all workers"
        )
    began = time.perf_counter()
    tables, errors = [], []
    with tempfile.TemporaryDirectory(prefix="soloist-") as folder:
        for case, point in cases:
            try:
                tables.append(_run(base, case, point, Path(folder)))
            except (Exception, PanicException) as error:  # noqa: BLE001
                errors.append((case, _words(error)))
    table = concat(tables) if tables else None
    return Group(table, errors, time.perf_counter() - began)


def _panic_exception() -> type[BaseException]:
    """What Rust raises where it fails; it has no public name."""
    for kind in BaseException.__subclasses__():
        if kind.__name__ == "PanicException":
            return kind
    return RuntimeError


PanicException = _panic_exception()


def _words(error: BaseException) -> str:
    if isinstance(error, SoloistError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def _run(base: Base, case: str, point: Point, folder: Path) -> pa.Table:
    scenario, changed = apply(base, point)
    about = scenario.get("experiment", {})
    name = str(about.get("machine", ""))
    sent = base.machines.get(name)
    if changed is not None or sent is not None:
        file = folder / f"{case}.toml"
        text = toml(changed) if changed is not None else sent[0] if sent else ""
        file.write_text(text, encoding="utf-8")
        about["machine"] = str(file)
    try:
        table = lab.run(scenario, progress=False, **base.options)
    except SoloistError as error:
        # The file is this worker's own, and gone in a moment.
        words = str(error).replace(str(folder / f"{case}.toml"), f"{name} (changed)")
        raise told(words) from None
    rows = len(table)
    at = table.column_names.index("machine")
    table = table.set_column(at, "machine", pa.array([name] * rows, pa.string()))
    table = table.add_column(0, "id", pa.array([case] * rows, pa.string()))
    for key, value in point.items():
        if key != "machine":
            table = table.append_column(key, _column(value, rows))
    return table


def _column(value: Any, rows: int) -> pa.Array:
    value = plain(value) if hasattr(value, "tolist") else value
    if not isinstance(value, (str, int, float, bool)):
        value = canonical(value)
    return pa.array([value] * rows)
