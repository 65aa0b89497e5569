# SPDX-License-Identifier: MIT OR Apache-2.0
"""``python -m soloist sweep FILE``: a sweep that a file describes.

``soloist-lab sweep`` is the same command. The file is TOML::

    scenario = "four-tasks.toml"        # beside this file
    seeds = 2                           # also: policies, seed, small, alone, out
    [grid]                              # all combinations
    "stream.bytes" = ["8M", "32M"]
    machine = ["opteron-6128", "raspberry-pi-4"]

or, instead of ``[grid]``, points by chance::

    [sample]
    n = 1000                            # also: method = "random", seed
    space."stream.bytes" = { low = "8M", high = "64M", log = true }
    space.machine = ["opteron-6128", "raspberry-pi-4"]
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from . import __version__, between, latin_hypercube, random, sweep
from ._native import SoloistError
from ._source import is_path, parsed, path, read, told
from .lab import checked
from .sampling import Point, points

_OPTIONS = ("seeds", "seed", "small", "alone", "policies")
_KEYS = ("scenario", "out", "grid", "sample", *_OPTIONS)
_METHODS = {"latin-hypercube": latin_hypercube, "random": random}


def described(file: str) -> tuple[str, list[Point], dict[str, Any]]:
    """The scenario, the points and the options that a file describes."""
    table = parsed(read(file), file)
    try:
        return _described(table, Path(file).parent)
    except SoloistError as error:
        raise told(str(error), file) from None


def _described(table: dict[str, Any], beside: Path) -> tuple[str, list[Point], dict[str, Any]]:
    _known("", table, _KEYS)
    if "scenario" not in table:
        raise told("`scenario` is missing: a scenario's file, or an experiment")
    if ("grid" in table) == ("sample" in table):
        raise told("expected either [grid] or [sample]")
    scenario = path("scenario", table["scenario"])
    if is_path(scenario) or (beside / scenario).is_file():
        scenario = str(beside / scenario)
    options = checked({key: table[key] for key in _OPTIONS if key in table})
    if "out" in table:
        options["out"] = str(beside / path("out", table["out"]))
    at = points(_values("grid", table["grid"])) if "grid" in table else _sampled(table["sample"])
    return scenario, at, options


def _sampled(sample: Any) -> list[Point]:
    if not isinstance(sample, dict):
        raise told(f"sample={sample!r}: expected a table")
    _known("[sample] has ", sample, ("n", "space", "method", "seed"))
    for key in ("n", "space"):
        if key not in sample:
            raise told(f"[sample]: `{key}` is missing")
    method = sample.get("method", "latin-hypercube")
    if method not in list(_METHODS):
        raise told(f"method={method!r}: expected {' or '.join(_METHODS)}")
    space = _values("space", sample["space"])
    return _METHODS[method](sample["n"], space, seed=sample.get("seed", 1))


def _known(where: str, table: dict[str, Any], keys: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(keys))
    if unknown:
        raise told(f"{where}no key {unknown[0]!r}; there are: {', '.join(sorted(keys))}")


def _values(name: str, keys: Any) -> dict[str, Any]:
    """The values of each key of a grid or a space."""
    if not isinstance(keys, dict):
        raise told(f"{name}={keys!r}: expected a table of keys and their values")
    return {key: _value(key, given) for key, given in keys.items()}


def _value(key: str, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    try:
        return between(**given)
    except TypeError:
        raise told(f"{key}: expected a list, or {{ low, high, log, step }}") from None
    except SoloistError as error:
        raise told(f"{key}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soloist-lab sweep" if os.environ.get("SOLOIST_LAB") else "python -m soloist sweep",
        description="Run a scenario at every point of a grid; results go to Parquet files.",
        epilog="What is in the folder of the same case, machine and version is not run again. "
        "Exit status: 0 done, 1 failed or a case could not be run, 2 misused.",
    )
    parser.add_argument("file", metavar="FILE", help="what to sweep: TOML (docs/how-to/python.md)")
    parser.add_argument("--scheduler", metavar="ADDRESS",
                        help="Dask's, such as tcp://host:8786 [default: this machine's cores]")  # fmt: skip
    parser.add_argument("--workers", metavar="N", type=int,
                        help="worker processes on this machine [default: one a core]")  # fmt: skip
    parser.add_argument("--out", metavar="DIR",
                        help="folder of the results [default: the file's, or results]")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print what came of it as JSON")
    return parser


def _run(args: argparse.Namespace) -> int:
    scenario, grid, options = described(args.file)
    if args.out is not None:
        options["out"] = args.out
    options.setdefault("out", "results")
    try:
        found = sweep(scenario, grid, args.scheduler, workers=args.workers, **options)
    except SoloistError as error:
        raise told(str(error), args.file) if hasattr(error, "key") else error from None
    told_ = {
        "out": found.out,
        "version": found.version,
        "cases": len(found.points),
        "ran": found.ran,
        "seconds": round(found.seconds, 3),
        "errors": [{"point": point, "error": words} for point, words in found.errors],
    }
    if args.json:
        print(json.dumps(told_, indent=2))
    else:
        print(f"{found.out}: {len(found.points)} cases, {found.ran} of them run now in "
              f"{found.seconds:.1f} s")  # fmt: skip
        for point, words in found.errors:
            print(f"soloist: {point}: {words}", file=sys.stderr)
    return 1 if found.errors else 0


def _fail(args: argparse.Namespace, words: str) -> None:
    """Says what ended the command, as soloist-lab does."""
    print(json.dumps({"error": words}) if args.json else f"soloist: {words}", file=sys.stderr)


def sweep_command(argv: list[str] | None = None) -> int:
    """The command; its exit status."""
    args = _parser().parse_args(argv)
    try:
        return _run(args)
    except SoloistError as error:
        _fail(args, str(error))
        return 2 if getattr(error, "file", None) == args.file else 1
    except KeyboardInterrupt:
        _fail(args, "stopped; what was done is kept, and the same command goes on")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def main() -> int:
    """``python -m soloist``."""
    match sys.argv[1:]:
        case ["sweep", *rest]:
            return sweep_command(rest)
        case ["--version"]:
            print(f"soloist {__version__}")
            return 0
        case ["-h" | "--help"]:
            print("usage: python -m soloist sweep FILE ... | --version")
            return 0
    print("usage: python -m soloist sweep FILE ... | --version", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
