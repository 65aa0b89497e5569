# SPDX-License-Identifier: MIT OR Apache-2.0
"""``soloist-lab sweep`` and ``python -m soloist sweep``."""

import json
import os
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SWEEP.replace("scenario", "scenery"), "no key 'scenery'; there are: alone, grid"),
        (SWEEP.replace("[grid]", "[gird]"), "no key 'gird'"),
        (SWEEP + "[sample]\nn = 1\n", "either \\[grid\\] or \\[sample\\]"),
        (SWEEP.replace("low", "from"), "expected a list, or { low, high, log, step }"),
        ("[", "sweep.toml: "),
    ],
)
def test_a_wrong_file_is_told(files, text, words):
    import re

    (files / "sweep.toml").write_text(text)
    said = call(files / "sweep.toml")
    assert said.returncode in (1, 2) and re.search(words, said.stderr), said.stderr
    assert "Traceback" not in said.stderr


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
