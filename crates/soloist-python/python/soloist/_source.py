# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of TOML, dictionaries, and names: one form of what users give."""

import json
import operator
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._native import SoloistError

Source = str | os.PathLike[str] | Mapping[str, Any]


def plain(value: Any) -> Any:
    """Numbers of numpy, paths and tuples as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} is neither a number, a text, a list nor a table")


def canonical(value: Any) -> str:
    """JSON that is the same for the same content."""
    return _json(value, "a value of a scenario or grid", sort_keys=True, separators=(",", ":"))


def toml(table: Mapping[str, Any]) -> str:
    """A dictionary as TOML."""
    return _native.toml_of(_json(table, "a dictionary that is no TOML", allow_nan=False))


def toml_value(what: str, value: Any) -> str:
    """A value as TOML; a dictionary in braces."""
    return _native.toml_value_of(_json(value, what, allow_nan=False))


def _json(value: Any, what: str, **options: Any) -> str:
    try:
        return json.dumps(value, default=plain, **options)
    except (TypeError, ValueError) as error:
        raise told(f"{what}: {error}") from None


def path(what: str, given: Any) -> str:
    """A name, or a path, as a text."""
    if not isinstance(given, (str, os.PathLike)):
        raise told(f"{what}={given!r}: expected a name or the path of a file")
    found = os.fsdecode(given)
    # Rust takes text; and no file has such a name.
    if "\0" in found or any("\ud800" <= c <= "\udfff" for c in found):
        raise told(f"{what}={given!r}: expected UTF-8 without NUL")
    return found


def texts(what: str, given: Any) -> list[str]:
    """A list of names; one alone may be given as it is."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Iterable) or isinstance(listed, Mapping):
        raise told(f"{what}={given!r}: expected a list of names")
    listed = list(listed)
    if not all(isinstance(name, str) for name in listed):
        raise told(f"{what}={given!r}: expected a list of names")
    return listed


def whole(what: str, given: Any, low: int, end: int) -> int:
    """A whole number from `low` to below `end`."""
    try:
        # Python takes True for 1.
        if isinstance(given, bool):
            raise TypeError
        number = operator.index(given)
    except TypeError:
        raise told(f"{what}={given!r}: expected a whole number") from None
    if not low <= number < end:
        raise told(f"{what}={given!r}: expected a number from {low} to {end - 1}")
    return number


def flag(what: str, given: Any) -> bool:
    """True or false; the text "false" would be true in Python."""
    if not isinstance(given, (bool, np.bool_)):
        raise told(f"{what}={given!r}: expected true or false")
    return bool(given)


def is_path(name: str) -> bool:
    """As the command line has it: names have neither `/` nor `.toml`."""
    return "/" in name or name.endswith(".toml")


def scenario_text(source: Source) -> tuple[str, str, bool]:
    """Text and file name of a scenario, and whether the text was made here."""
    if isinstance(source, Mapping):
        return toml(source), "scenario", True
    name = path("scenario", source)
    if not is_path(name) and not Path(name).is_file():
        return *_native.lab_text(name), False
    return read(name), name, False


def read(name: str) -> str:
    """The text of a file."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise told(getattr(error, "strerror", None) or str(error), name) from None


def parsed(text: str, file: str) -> dict[str, Any]:
    """The table that a file's text is."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Before Python 3.14 only its words have the line.
        line = re.search(r"at line (\d+)", str(error))
        raise told(str(error), file, int(line[1]) if line else None) from None


def told(message: str, file: str | None = None, line: int | None = None) -> SoloistError:
    """An error with the words and the attributes of Rust's; all errors are made here."""
    place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
    error = SoloistError(place + message)
    error.message, error.file, error.line = message, file, line
    return error


def scenario_table(source: Source) -> dict[str, Any]:
    """A scenario as a dictionary; recordings are absolute paths."""
    if isinstance(source, Mapping):
        table, beside = json.loads(_json(source, "a scenario")), Path()
        _check_tables(table, None)
    else:
        text, file, _ = scenario_text(source)
        table, beside = parsed(text, file), Path(file).parent
        _check_tables(table, file)
    for task in table.get("task", []):
        if isinstance(task.get("recording"), str):
            task["recording"] = str((beside / task["recording"]).resolve())
    return table


def _check_tables(scenario: dict[str, Any], file: str | None) -> None:
    """What is read here of a scenario has the form that it is read by."""
    about, tasks = scenario.get("experiment", {}), scenario.get("task", [])
    if not isinstance(about, dict):
        raise told(f"experiment={about!r}: expected a table", file)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise told(f"task={tasks!r}: expected a list of tables", file)
