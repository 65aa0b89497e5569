# SPDX-License-Identifier: MIT OR Apache-2.0
"""Machines and addresses."""

import json
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soloist
from conftest import is_whole


def test_every_machine_decodes_and_encodes():
    for name in soloist.machine.names():
        machine = soloist.machine.load(name)
        assert machine.name == name
        rng = np.random.default_rng(1)
        start, end, _ = machine.ranges[-1]
        addresses = rng.integers(start, end, 1000, dtype=np.uint64) & ~np.uint64(63)
        places = machine.decode(addresses)
        assert places["bank"].max() < machine.banks and places["bank"].dtype == np.uint32
        if name == "opteron-6128":
            assert np.array_equal(machine.encode(places), addresses)


def test_the_command_line_says_the_same(soloist_lab):
    target = soloist_lab.replace("soloist-lab", "soloist")
    machine = soloist.machine.load("opteron-6128")
    addresses = [0x1234_5000, 0x7_0000_0040, 0x40]
    said = subprocess.run(
        [target, "map", "decode", "--machine", "opteron-6128", "--json", *map(hex, addresses)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    places = machine.decode(addresses)
    for i, line in enumerate(json.loads(said.stdout)):
        # The command prints the chip select of a rank.
        for field in ("node", "channel", "bank", "row", "column"):
            assert line[field] == places[field][i], (line, field)


def test_shapes_and_kinds():
    machine = soloist.machine.load("raspberry-pi-4")
    grid = np.arange(24, dtype=np.uint64).reshape(2, 3, 4) << np.uint64(12)
    assert machine.decode(grid)["bank"].shape == (2, 3, 4)
    assert machine.decode(grid[:, :, ::2], ["row"])["row"].shape == (2, 3, 2)
    assert machine.decode(4096)["bank"].shape == ()
    assert machine.decode([])["bank"].shape == (0,)
    assert machine.decode(np.array([4096], np.int32))["bank"] == [1]
    read_only = np.array([4096], np.uint64)
    read_only.flags.writeable = False
    assert machine.decode(read_only)["bank"] == [1]
    out = {"row": np.zeros(2, np.uint32)}
    assert machine.decode([0, 1 << 20], out=out)["row"] is out["row"] and out["row"][1] == 32
    assert machine.encode({"bank": [[1], [2]], "row": [0, 3]}).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.decode([1.5]), "whole numbers"),
        (lambda m: m.decode([-1]), "from 0 to"),
        (lambda m: m.decode([0], ["banks"]), "no field 'banks'; there are: node"),
        (lambda m: m.decode([0, 1 << 40]), r"addresses\[1\] = 0x10000000000 lies in no range"),
        (lambda m: m.decode([0], holes="no"), "expected 'raise' or 'mark'"),
        (lambda m: m.encode({"bank": [8]}), r"places\[0\] \(node 0, .*bank 8"),
        (lambda m: m.encode({"bank": [1, 2], "row": [1, 2, 3]}), "not of one shape"),
        (lambda m: m.decode([0], out={"row": np.zeros(1)}), r"out\['row'\]: expected a writable"),
        (lambda m: m.encode({"bnak": [1]}), "no field 'bnak'"),
        (lambda m: m.encode([1]), "expected a dictionary of arrays"),
        (lambda m: m.encode({"bank": [1]}, out=np.zeros(1)), "out: expected a writable array of uint64"),
        (lambda m: m.decode([float("nan")]), "whole numbers, not float64"),
        (lambda m: m.decode([[1], [2, 3]]), "addresses: no array"),
        (lambda m: m.decode(np.ma.masked_array([1, 2], [True, False])), "a masked array"),
        (lambda m: m.decode([0], out={"row": [0]}), r"out\['row'\]: expected a writable"),
        (lambda m: m.decode([0], 5), "fields=5: expected a list of names"),
        (lambda m: m.decode([0], out=5), "out: expected a dictionary of arrays"),
        (lambda m: soloist.machine.load(None), "machine=None: expected a name or the path"),
        (lambda m: soloist.machine.load("a\0.toml"), "expected UTF-8 without NUL"),
        (lambda m: soloist.lab.check("\udcff.toml"), r"scenario='\\udcff.toml': expected UTF-8"),
        (lambda m: soloist.machine.parse(5), "text=5: expected the text of a machine file"),
        (lambda m: m.decode(one := np.zeros(2, np.uint64), out={"row": one.view(np.uint32)[:2]}),
         "shares memory with the addresses"),
    ],
)
def test_wrong_arrays_are_refused(call, words):
    with pytest.raises(soloist.SoloistError, match=words) as caught:
        call(soloist.machine.load("raspberry-pi-4"))
    is_whole(caught.value)


def test_a_field_alone_is_a_list_of_one():
    machine = soloist.machine.load("raspberry-pi-4")
    assert list(machine.decode([0], "row")) == ["row"]


def test_an_array_that_is_written_is_nothing_elses():
    machine = soloist.machine.load("raspberry-pi-4")
    one, addresses = np.zeros(4, np.uint32), np.zeros(2, np.uint64)
    with pytest.raises(soloist.SoloistError, match=r"out\['row'\] shares memory with out\['bank'\]"):
        machine.decode([0] * 4, out={"bank": one, "row": one})
    with pytest.raises(soloist.SoloistError, match="shares memory with the addresses"):
        machine.decode(addresses, out={"bank": addresses.view(np.uint32)[:2]})
    with pytest.raises(soloist.SoloistError, match="out shares memory with bank"):
        machine.encode({"bank": addresses.view(np.uint32)[:2]}, out=addresses)
    out = np.ones(4, np.uint64)
    assert machine.encode({"bank": one}, out=out) is out and not out.any()


def test_arrays_are_worked_on_in_parts(monkeypatch):
    """Ctrl-C is heard between them."""
    monkeypatch.setattr(soloist.machine, "_PART", 3)
    machine = soloist.machine.load("raspberry-pi-4")
    addresses = np.arange(8, dtype=np.uint64) << np.uint64(12)
    places = machine.decode(addresses)
    assert np.array_equal(places["bank"], np.arange(8))
    assert np.array_equal(machine.encode(places), addresses)
    with pytest.raises(soloist.SoloistError, match=r"places\[7\] .*bank 8"):
        machine.encode({"bank": [0, 1, 2, 3, 4, 5, 6, 8]})
    heard = []

    def interrupted(*_):
        heard.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        monkeypatch.setattr(machine, "_native", Raiser(machine._native))
        with pytest.raises(KeyboardInterrupt):
            machine.decode(addresses)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [True]


class Raiser:
    """A native machine at whose first part somebody types Ctrl-C."""

    def __init__(self, native):
        self._native = native

    def decode(self, *given):
        signal.raise_signal(signal.SIGINT)
        return self._native.decode(*given)


def test_holes_are_marked():
    machine = soloist.machine.load("raspberry-pi-4")
    places = machine.decode([4096, 1 << 40], holes="mark")
    assert [a[1] for a in places.values()] == [soloist.machine.NO_PLACE] * 7
    assert places["bank"][0] == 1


def test_errors_have_file_and_line(tmp_path):
    with pytest.raises(soloist.SoloistError, match='did you mean "opteron-6128"'):
        soloist.machine.load("opteron-6129")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[machine]\nname = "x"\ndescrption = "y"\n')
    with pytest.raises(soloist.SoloistError) as caught:
        soloist.machine.load(wrong)
    assert (caught.value.file, caught.value.line) == (str(wrong), 3)
    assert "descrption" in caught.value.message
    assert isinstance(caught.value, ValueError)
    is_whole(caught.value)


def test_one_helper_makes_all_errors():
    """An error that is raised elsewhere lacks what the helper adds."""
    package = Path(soloist.__file__).parent
    makers = [file.name for file in package.glob("*.py") if "SoloistError(" in file.read_text()]
    assert makers == ["_source.py"]
