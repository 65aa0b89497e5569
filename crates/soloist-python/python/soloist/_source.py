# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of TOML, dictionaries, and names: one form of what users give."""

import json
import operator
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=plain)
    except (TypeError, ValueError) as error:
        raise told(f"a value of a scenario or grid: {error}") from None


def toml(table: Mapping[str, Any]) -> str:
    """A dictionary as TOML."""
    try:
        text = json.dumps(table, default=plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SoloistError(f"a dictionary that is no TOML: {error}") from None
    return _native.toml_of(text)


def path(what: str, given: Any) -> str:
    """A name, or a path, as a text."""
    if not isinstance(given, (str, os.PathLike)):
        raise told(f"{what}={given!r}: expected a name or the path of a file")
    found = os.fspath(given)
    return found if isinstance(found, str) else os.fsdecode(found)


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
        number = operator.index(given)
    except TypeError:
        raise told(f"{what}={given!r}: expected a whole number") from None
    if not low <= number < end:
        raise told(f"{what}={given!r}: expected a number from {low} to {end - 1}")
    return number


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
        raise told(f"{name}: {getattr(error, 'strerror', None) or error}", name) from None


def told(message: str, file: str | None = None) -> SoloistError:
    """An error with the attributes that Rust's have."""
    error = SoloistError(message)
    error.message, error.file, error.line = message, file, None
    return error


def scenario_table(source: Source) -> dict[str, Any]:
    """A scenario as a dictionary; recordings are absolute paths."""
    if isinstance(source, Mapping):
        table, beside = json.loads(json.dumps(source, default=plain)), Path()
    else:
        text, file, _ = scenario_text(source)
        try:
            table, beside = tomllib.loads(text), Path(file).parent
        except tomllib.TOMLDecodeError as error:
            raise told(f"{file}: {error}", file) from None
    for task in table.get("task", []):
        if isinstance(task, dict) and isinstance(task.get("recording"), str):
            task["recording"] = str((beside / task["recording"]).resolve())
    return table
