# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios: the command line's figures, and what is wrong with one."""

import copy
import csv
import os
import pickle
import signal
import subprocess
import threading
import time

import pyarrow as pa
import pytest
import soloist
from conftest import TOP, is_whole

FOUR = str(TOP / "docs/examples/four-tasks.toml")


def test_python_and_the_command_line_have_equal_figures(soloist_lab, tmp_path):
    """Every figure, to the last digit."""
    table = soloist.lab.run(FOUR, seeds=1, small=True, alone=True)
    path = tmp_path / "out.csv"
    subprocess.run(
        [soloist_lab, "lab", "run", FOUR, "--seeds", "1", "--small", "--csv", path],
        check=True, capture_output=True,
    )  # fmt: skip
    with path.open() as file:
        lines = list(csv.DictReader(file))
    beside = [line for line in lines if not line["case"].startswith("alone_")]
    rows = table.to_pylist()
    assert len(rows) == len(beside) > 0
    for ours, theirs in zip(rows, beside, strict=True):
        for key, value in theirs.items():
            if key == "value":
                continue
            mine = ours[key]
            assert (value == "") if mine is None else (type(mine)(value) == mine), (key, theirs)
    alone = {line["task"]: float(line["time"]) for line in lines if "alone_" in line["case"]}
    for row in rows:
        if row["slowdown"] is not None:
            assert row["alone"] == alone[row["task"]]
            assert row["slowdown"] == row["time"] / row["alone"]
    assert {row["task"] for row in rows if row["slowdown"] is not None} == set(alone)


def test_a_dictionary_is_a_file(tiny, tmp_path):
    table = soloist.lab.run(tiny, policies="buddy", seeds=2, seed=7)
    assert table["policy"].unique().to_pylist() == ["buddy"]
    assert table["seed"].unique().to_pylist() == [7, 8]
    assert table.schema.field("time").metadata == {b"unit": b"ms"}
    assert table["idle"].type == pa.float64()
    again = soloist.lab.run(tiny, ["buddy"], 2, seed=7, threads=1)
    assert again.equals(table)


def test_changes_of_machine_and_model_count(tiny):
    base = soloist.lab.run(tiny, ["buddy"], alone=False)
    assert base["slowdown"].null_count == len(base)
    other = soloist.lab.run(tiny, ["buddy"], machine="opteron-6128", alone=False)
    assert other["machine"][0].as_py() == "opteron-6128" and other["time"] != base["time"]
    slow = soloist.lab.run(tiny, ["buddy"], model={"northbridge.request_ps": 99000}, alone=False)
    assert slow["latency"][0].as_py() > base["latency"][0].as_py()
    table = {"northbridge": {"request_ps": 99000}}
    assert soloist.lab.run(tiny, ["buddy"], model=table, alone=False).equals(slow)


def test_a_number_that_varies_is_no_change_of_the_model(tiny):
    varies = {"sweep": {"name": "n", "values": [4, 8]}, "model": {"controller": {"bank_queue": "$n"}}}
    with pytest.raises(soloist.SoloistError, match=r'model: nothing says "\$n"'):
        soloist.lab.run(tiny | varies, model={"controller.bank_queue": 16})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policies": ["body"]}, "no policy `body`.*at `policies"),
        ({"polices": []}, "unknown field `polices`"),
        ({"task": []}, "scenario: .*none to wait for"),
        ({"x": None}, "not a table of TOML"),
        ({"x": object()}, "neither a number"),
    ],
)
def test_a_wrong_dictionary_quotes_what_is_wrong(tiny, change, words):
    with pytest.raises(soloist.SoloistError, match=words) as caught:
        soloist.lab.run(tiny | change)
    is_whole(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": None}, "scenario=None: expected a name or the path"),
        ({"policies": 5}, "policies=5: expected a list of names"),
        ({"policies": [1]}, r"policies=\[1\]: expected a list of names"),
        ({"seeds": 0}, "seeds=0: expected a number from 1"),
        ({"seeds": "2"}, "seeds='2': expected a whole number"),
        ({"seed": -1}, "seed=-1: expected a number from 0"),
        ({"threads": -1}, "threads=-1: expected a number from 0"),
        ({"machine": 3}, "machine=3: expected a name"),
        ({"model": [1]}, r"model=\[1\]: expected a dictionary"),
        ({"model": {1: 2}}, "model={1: 2}: expected a dictionary"),
        ({"model": {"controller.bank_que": 1}}, "unknown field `bank_que`, expected one of"),
        ({"model": {"controller": {"bank_que": 1}}}, "unknown field `bank_que`, expected one of"),
        ({"model": {"controller.bank_queue": {"x": 4}}}, "invalid type: map, expected"),
        ({"progress": 5}, "progress=5: expected True, False or a function"),
        ({"seeds": True}, "seeds=True: expected a whole number"),
        ({"small": "false"}, "small='false': expected true or false"),
        ({"alone": None}, "alone=None: expected true or false"),
    ],
)
def test_wrong_options_are_told(tiny, options, words):
    with pytest.raises(soloist.SoloistError, match=words) as caught:
        soloist.lab.run(**{"scenario": tiny} | options)
    is_whole(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"machine": "nope"}, "machine='nope': .*no such machine"),
        ({"policies": ["buddies"]}, r'policies=\["buddies"\]: .*no policy'),
        ({"model": {"controller.bank_que": 1}}, "model: .*unknown field `bank_que`"),
    ],
)
def test_a_wrong_argument_is_not_the_files_fault(options, words):
    for call in (soloist.lab.check, soloist.lab.run):
        with pytest.raises(soloist.SoloistError, match=words) as caught:
            call("camc-table-2", **options)
        is_whole(caught.value)
        assert caught.value.file is None


def test_a_wrong_machine_file_has_its_line(small, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(small.read_text().replace("ways = 1,", "weys = 1,", 1))
    for call in (soloist.lab.check, soloist.lab.run):
        with pytest.raises(soloist.SoloistError, match="machine='.*': .*weys") as caught:
            call("camc-table-2", machine=str(wrong))
        is_whole(caught.value)
        assert caught.value.file == str(wrong) and caught.value.line > 1


def test_a_wrong_file_is_not_the_arguments_fault(tmp_path):
    text, _ = soloist._native.lab_text("camc-table-2")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(f"{text}\n[model.controller]\nbank_que = 3\n")
    with pytest.raises(soloist.SoloistError, match="unknown field `bank_que`") as caught:
        soloist.lab.check(wrong, model={"controller.bank_queue": 4})
    is_whole(caught.value)
    assert caught.value.file == str(wrong) and caught.value.line > 0


def test_check_has_the_options_of_run(tiny):
    assert soloist.lab.check(tiny, policies="buddy") == soloist.lab.check(tiny, seeds=3) - 1
    with pytest.raises(TypeError, match="sed"):
        soloist.lab.check(tiny, sed=3)


def test_a_wrong_file_has_its_line(tmp_path):
    text = (TOP / "docs/examples/four-tasks.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("kind = ", "knd = ", 1))
    with pytest.raises(soloist.SoloistError) as caught:
        soloist.lab.check(str(path))
    assert caught.value.file == str(path) and caught.value.line > 1
    with pytest.raises(soloist.SoloistError, match="No such file"):
        soloist.lab.run("nowhere.toml")
    with pytest.raises(soloist.SoloistError, match="did you mean"):
        soloist.lab.run("camc-tabel-2")
    with pytest.raises(soloist.SoloistError, match="no policy"):
        soloist.lab.run(FOUR, policies=["buddies"])


def test_progress_is_told_and_may_raise(tiny):
    seen = []
    tiny["task"][0]["work"] = 5_000
    soloist.lab.run(tiny, seeds=4, progress=lambda done, all: seen.append((done, all)))
    assert seen == sorted(seen) and seen[-1][0] <= seen[-1][1] == 12

    def fail(done, all):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        soloist.lab.run(tiny, seeds=4, progress=fail)


def test_control_c_is_heard_at_once(tiny):
    """And other threads run meanwhile."""
    tiny["task"][0]["work"] = 1_000_000
    ticks = []

    def interrupt():
        time.sleep(0.3)
        ticks.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    # A shell's background jobs ignore it, and so would Python.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            soloist.lab.run(tiny, seeds=1000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - ticks[0] < 2


def test_a_forked_child_runs_too(tiny):
    """Although its parent's threads are not there: multiprocessing forks before Python 3.14."""
    soloist.lab.run(tiny)
    child = os.fork()
    if child == 0:
        # Whatever comes of it, pytest goes on in the parent alone.
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            rows = [len(soloist.lab.run(tiny, progress=False)) for _ in range(2)]
            os._exit(0 if rows[0] == rows[1] > 0 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_lists():
    assert "camc-table-2" in soloist.lab.names() and "buddy" in soloist.lab.policies()
    assert soloist.lab.metrics()["time"] == "ms"
    one = copy.copy(soloist.lab.check("camc-table-2"))
    assert one > 0
