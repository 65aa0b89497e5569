# SPDX-License-Identifier: MIT OR Apache-2.0
"""What all tests share."""

import os
from pathlib import Path

import pytest
import soloist

TOP = Path(__file__).resolve().parents[3]


def is_whole(error):
    """The error has the attributes that the manual promises, and its words say the same."""
    place = "" if error.file is None else f"{error.file}: "
    if error.line is not None:
        assert error.file is not None and error.line > 0
        place = f"{error.file}:{error.line}: "
    assert error.message and str(error) == place + error.message


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A board of little memory and cache: both are soon filled."""
    text, _ = soloist._native.machine_text("raspberry-pi-4")
    file = tmp_path_factory.mktemp("machines") / "small.toml"
    for large, little in [
        ("end = 0xfc000000", "end = 0x4000000"),
        # As many sets, which the colours are of.
        ('size = "1M", ways = 16', 'size = "64K", ways = 1'),
    ]:
        assert large in text
        text = text.replace(large, little)
    file.write_text(text)
    return file


@pytest.fixture
def tiny(small):
    """A scenario that takes some milliseconds."""
    return {
        "policies": ["buddy", "camc"],
        "experiment": {"id": "tiny", "title": "Tiny", "machine": str(small), "repeats": 1},
        "task": [
            {"name": "victim", "kind": "latency", "cpus": "0", "bytes": "2M", "work": 2000},
            {
                "name": "noise",
                "kind": "bandwidth-read",
                "cpus": "1-3",
                "copies": 1,
                "bytes": "2M",
                "work": 2000,
                "background": True,
            },
        ],
    }


@pytest.fixture(scope="session")
def soloist_lab():
    """The command line of the same sources."""
    program = os.environ.get("SOLOIST_LAB_PROGRAM", TOP / "target/debug/soloist-lab")
    if not Path(program).exists():
        pytest.fail(f"no {program}: cargo build -p soloist-lab-cli")
    return str(program)
