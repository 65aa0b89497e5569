# SPDX-License-Identifier: MIT OR Apache-2.0
"""``soloist-lab sweep`` and ``python -m soloist sweep``."""

import json
import os
import subprocess
import sys

import pytest
from soloist.__main__ import sweep_command

SWEEP = """scenario = "tiny.toml"
out = "kept"
seeds = 1
[grid]
"noise.copies" = [1, 2]
"noise.bytes" = { low = "1M", high = "2M", step = "1M" }
"""


@pytest.fixture
def files(tiny, tmp_path):
    from soloist._source import toml

    (tmp_path / "tiny.toml").write_text(toml(tiny))
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


def call(*words, program=(sys.executable, "-m", "soloist", "sweep"), **env):
    return subprocess.run(
        [*program, *words], capture_output=True, text=True, check=False, env=os.environ | env
    )


def test_a_file_is_swept_once(files, soloist_lab):
    door = {"program": (soloist_lab, "sweep"), "SOLOIST_PYTHON": sys.executable}
    first = call(files / "sweep.toml", "--workers", "1", "--json", **door)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["cases"], told["ran"], told["errors"]) == (4, 4, [])
    again = call(files / "sweep.toml")
    assert again.returncode == 0 and "kept: 4 cases, 0 of them run now" in again.stdout


OPTIONS, GRID = SWEEP.split("[grid]\n")
SAMPLE = OPTIONS + '[sample]\nn = 1\nspace."noise.bytes" = ["1M"]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SWEEP.replace("scenario", "scenery"), "no key 'scenery'; there are: alone, grid"),
        (SWEEP.replace("[grid]", "[gird]"), "no key 'gird'"),
        (SWEEP + "[sample]\nn = 1\n", "expected either [grid] or [sample]"),
        (SWEEP.replace("low", "from"), "noise.bytes: expected a list, or { low, high, log, step }"),
        (SWEEP.replace('"1M" }', "nan }"), "noise.bytes: step nan: expected a finite number"),
        (SWEEP.replace(" }", ', log = "false" }'), "noise.bytes: log='false': expected true"),
        (SWEEP.replace("[1, 2]", "[]"), "noise.copies: no values"),
        (SWEEP.replace('"tiny.toml"', "5"), "scenario=5: expected a name"),
        (SWEEP.replace('"kept"', "5"), "out=5: expected a name or the path"),
        (SWEEP.replace("seeds = 1", "seeds = true"), "seeds=True: expected a whole number"),
        (SWEEP.replace("seeds = 1", "seeds = 0"), "seeds=0: expected a number from 1"),
        (SWEEP.replace("seeds = 1", 'small = "false"'), "small='false': expected true or false"),
        (SWEEP.replace("seeds = 1", "alone = 0"), "alone=0: expected true or false"),
        (SWEEP.replace("seeds = 1", "policies = 5"), "policies=5: expected a list of names"),
        (OPTIONS + "grid = 5\n", "grid=5: expected a table of keys"),
        (OPTIONS + "[[grid]]\nused = 1\n", "grid=[{'used': 1}]: expected a table of keys"),
        (OPTIONS + "sample = 5\n", "sample=5: expected a table"),
        (SAMPLE.replace("n = 1", "n = true"), "n=True: expected a whole number"),
        (SAMPLE.replace("n = 1", "n = 0"), "0 points: expected at least 1"),
        (SAMPLE.replace("n = 1\n", ""), "[sample]: `n` is missing"),
        (SAMPLE.replace("n = 1", "n = 1\nsed = 2"), "[sample] has no key 'sed'; there are: method"),
        (SAMPLE.replace("n = 1", 'n = 1\nmethod = ["x"]'), "method=['x']: expected latin-hyper"),
        (SAMPLE.replace("n = 1", "n = 1\nseed = 1.5"), "seed=1.5: expected a whole number"),
        (SAMPLE.replace('."noise.bytes" = ["1M"]', " = 4"), "space=4: expected a table of keys"),
        (SWEEP.replace("noise.copies", "nosie.copies"), "the grid's key 'nosie.copies': nothing has"),
        (SWEEP.replace("noise.copies", "experiment.id.x"), "the grid's key 'experiment.id.x': 'id' is no"),
        ("[", ""),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told(files, text, words, monkeypatch, capsys):
    """By its name, the key and status 2; and nothing runs."""
    monkeypatch.chdir(files)
    (files / "sweep.toml").write_text(text)
    assert sweep_command(["sweep.toml", "--workers", "1"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"soloist: sweep.toml: {words}") and told.count("\n") == 1
    assert not (files / "kept").exists()
    assert sweep_command(["sweep.toml", "--json"]) == 2
    assert json.loads(capsys.readouterr().err) == {"error": told.removeprefix("soloist: ").strip()}


def test_a_wrong_line_is_told(files):
    (files / "sweep.toml").write_text("seeds = \n")
    said = call(files / "sweep.toml")
    assert said.returncode == 2 and f"{files / 'sweep.toml'}:1: " in said.stderr, said.stderr


def test_points_by_chance(files):
    sample = '[sample]\nn = 3\nseed = 2\nspace."noise.bytes" = { low = "1M", high = "2M" }\n'
    (files / "sweep.toml").write_text(SWEEP.split("[grid]")[0] + sample)
    said = call(files / "sweep.toml", "--workers", "1", "--out", files / "other")
    assert said.returncode == 0 and "other: 3 cases" in said.stdout, said.stderr


def test_the_door_says_what_is_missing(files, soloist_lab):
    door = {"program": (soloist_lab, "sweep")}
    said = call(files / "sweep.toml", SOLOIST_PYTHON="/usr/bin/no-python", **door)
    assert said.returncode == 1 and "pip install" in said.stderr, said.stderr
    help_ = call("--help", SOLOIST_PYTHON=sys.executable, **door)
    assert help_.returncode == 0 and "--scheduler" in help_.stdout
