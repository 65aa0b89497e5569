# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: what is kept, what is not run again, and what goes wrong."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soloist
from conftest import is_whole
from distributed import Client, LocalCluster
from soloist import _sweep, store


@pytest.fixture(scope="module")
def client():
    """Two workers that all tests share."""
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                      dashboard_address=None) as cluster, Client(cluster) as client:  # fmt: skip
        yield client


GRID = {"noise.bytes": ["1M", "4M"], "noise.copies": [1, 2, 3]}


def test_a_sweep_is_lab_run_at_each_point(tiny, client, tmp_path):
    found = soloist.sweep(tiny, GRID, client, tmp_path / "out")
    assert (found.ran, len(found.points), found.errors) == (6, 6, [])
    frame = found.frame()
    tiny["task"][1] |= {"bytes": "4M", "copies": 2}
    alone = soloist.lab.run(tiny).to_pandas()
    same = frame[(frame["noise.bytes"] == "4M") & (frame["noise.copies"] == 2)]
    columns = list(alone.columns)
    pd.testing.assert_frame_equal(same[columns].reset_index(drop=True), alone)
    order = frame.drop_duplicates("id")[["noise.bytes", "noise.copies"]].to_numpy().tolist()
    assert order == [[b, c] for b in ("1M", "4M") for c in (1, 2, 3)]


def test_what_is_there_is_not_run_again(tiny, client, tmp_path):
    out = tmp_path / "out"
    first = soloist.sweep(tiny, GRID, client, out)
    assert soloist.sweep(tiny, GRID, client, out).ran == 0
    more = soloist.sweep(tiny, GRID | {"noise.copies": [1, 2]}, client, out)
    assert (more.ran, len(more.points)) == (0, 4) and more.frame()["id"].nunique() == 4
    other = soloist.sweep(tiny, GRID, client, out, seed=2)
    assert other.ran == 6 and not set(other.points) & set(first.points)
    # A grid with another key: columns that others have not are empty there.
    keyed = soloist.sweep(tiny, {"used": [0.2]}, client, out)
    assert keyed.ran == 1
    everything = soloist.frame(out)
    assert everything["id"].nunique() == 13 and everything["used"].notna().sum() == len(keyed.table())


@pytest.mark.parametrize("one, other, as_texts", [
    (["1M", "2M"], soloist.between("3M", "4M", step="1M"), ["1M", "2M", "3145728", "4194304"]),
    (["1M", 2 << 20], [3 << 20, "4M"], ["1M", "2097152", "3145728", "4M"]),
])  # fmt: skip
def test_a_key_of_texts_and_numbers_is_one_of_texts(tiny, client, tmp_path, one, other, as_texts):
    out = tmp_path / "out"
    for values in (one, other):
        found = soloist.sweep(tiny, {"noise.bytes": values}, client, out)
        assert (found.ran, found.errors) == (2, [])
    assert sorted(set(soloist.frame(out)["noise.bytes"])) == sorted(as_texts)


@pytest.mark.parametrize("one, other, both", [
    ([True], [1], ["true", "1"]),
    ([0.5], [1 << 60 | 1], ["0.5", "1152921504606846977"]),
    ([0.5], [1], [0.5, 1.0]),
    ([None], [1], [None, 1]),
])  # fmt: skip
def test_columns_of_two_kinds(one, other, both):
    joined = store.concat([pa.table({"a": one, "b": [0]}), pa.table({"a": other})])
    assert joined.to_pydict() == {"a": both, "b": [0, None]}


def test_labels_are_those_that_were_given(tiny, client, tmp_path):
    out = tmp_path / "out"
    both = soloist.sweep(tiny, {"label.board": ["a", "b"]}, client, out)
    assert (both.ran, set(both.frame()["label.board"])) == (2, {"a", "b"})
    other = soloist.sweep(tiny, [{"label.board": "c"}], client, out)
    assert set(other.frame()["label.board"]) == {"c"}
    assert soloist.sweep(tiny, {"label.board": ["a", "b", "c"]}, client, out).ran == 0


def test_machines_and_their_keys(tiny, client, tmp_path):
    text, _ = soloist._native.machine_text("raspberry-pi-4")
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    grid = [
        {"machine": "raspberry-pi-4"},
        {"machine": str(mine), "machine.memory.northbridge.request_ps": 90_000},
        {"machine": "opteron-6128"},
    ]
    frame = soloist.sweep(tiny, grid, client, tmp_path / "out").frame()
    times = frame[frame["task"] == "victim"].groupby("machine", sort=False)["time"].mean()
    assert list(times.index) == [point["machine"] for point in grid]
    assert times.iloc[1] > times.iloc[0]
    # A file's content is part of the case.
    mine.write_text(text.replace("cpi = 0.5", "cpi = 1.5"))
    assert soloist.sweep(tiny, grid, client, tmp_path / "out").ran == 1


def test_a_machine_files_content_is_part_of_the_case(tiny, client, tmp_path):
    mine = tmp_path / "mine.toml"
    text, _ = soloist._native.machine_text("raspberry-pi-4")
    tiny["policies"] = ["buddy"]
    tiny["task"].pop()
    for ns in (37, 99):
        mine.write_text(text.replace("request_ps = 37000", f"request_ps = {ns}000"))
        found = soloist.sweep(tiny, {"experiment.machine": [str(mine)]}, client, tmp_path / "out")
        assert (found.ran, found.errors) == (1, [])
        assert set(found.frame()["machine"]) == {str(mine)}
    assert soloist.frame(tmp_path / "out")["time"].nunique() == 2


def test_a_machine_file_is_utf_8_whatever_the_locale_is(tiny, small, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(f"# für Köln\n{small.read_text()}", encoding="utf-8")
    program = """
import json, sys
import soloist
from soloist import _cases
scenario, name = json.loads(sys.argv[1])
base = _cases.Base(scenario, {}, _cases.local_machines({name}), soloist.version())
group = _cases.run_group(base, [("a", {"machine": name})])
assert not group.errors and len(group.table), group.errors
"""
    arguments = [sys.executable, "-c", program, json.dumps([tiny, str(mine)])]
    c = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run(arguments, check=True, env=os.environ | c)


def test_one_wrong_case_of_1000(tiny, client, tmp_path):
    """999 results and one error with its point."""
    tiny["task"] = [tiny["task"][0] | {"work": 1}]
    tiny["policies"] = ["buddy"]
    grid = {"victim.work": [*range(1, 1000), "many"]}
    found = soloist.sweep(tiny, grid, client, tmp_path / "out", alone=False)
    assert found.frame()["id"].nunique() == found.ran == 999
    [(point, words)] = found.errors
    assert point == {"victim.work": "many"} and "`many`: expected a number" in words
    again = soloist.sweep(tiny, grid, client, tmp_path / "out", alone=False)
    assert (again.ran, len(again.errors)) == (0, 1)


def test_wrong_keys_stop_before_anything_runs(tiny, client, tmp_path):
    for key, words in [("nois.bytes", r"did you mean noise.bytes\?"), ("zzz", "there are: machine")]:
        with pytest.raises(soloist.SoloistError, match=words):
            soloist.sweep(tiny, {key: [1]}, client, tmp_path / "out")
    with pytest.raises(soloist.SoloistError, match="no values"):
        soloist.sweep(tiny, {"used": []}, client, tmp_path / "out")
    found = soloist.sweep(tiny, {"noise.bites": [1], "machine.cache.l9": [2]}, client, tmp_path / "o")
    assert "unknown field" in found.errors[0][1]


def test_wrong_options_stop_before_anything_runs(tiny, client, tmp_path):
    for grid, options, words in [
        (None, {}, "the grid: None is no point"),
        ("used", {}, "the grid: 'used' is no point"),
        ([1], {}, "the grid: 1 is no point"),
        ({1: [2]}, {}, "the grid's key 1: expected a text"),
        ({"used": [object()]}, {}, "object is neither a number"),
        # One of them would hold in silence, and the column say the other.
        ({"policies": [["camc"]]}, {"policies": ["buddy"]}, "'policies': the option 'policies' says it too"),
        ({"experiment.repeats": [2]}, {"seeds": 3}, "'experiment.repeats': the option 'seeds' says it too"),
        (GRID, {"out": None}, "out=None: expected"),
        (GRID, {"policies": 7}, "policies=7: expected a list"),
        (GRID, {"seeds": "x"}, "seeds='x': expected a whole number"),
        (GRID, {"small": "false"}, "small='false': expected true or false"),
        # LocalCluster would wait for ever.
        (GRID, {"workers": -1}, "workers=-1: expected a number from 1"),
        (GRID, {"engine": 5}, "no scheduler of Dask at 5"),
    ]:
        with pytest.raises(soloist.SoloistError, match=words):
            soloist.sweep(tiny, grid, **{"engine": client, "out": tmp_path / "out"} | options)


def test_wrong_scenarios_stop_before_anything_runs(tiny, client, tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("[machine]\nname = \n")
    for change, grid, words in [
        ({"experiment": 5}, GRID, "experiment=5: expected a table"),
        ({"task": 5}, GRID, "task=5: expected a list of tables"),
        ({"task": [5]}, GRID, r"task=\[5\]: expected a list of tables"),
        ({"title": object()}, GRID, "object is neither a number"),
        ({"model": 5}, {"model.a.b": [1]}, "'model' is no table"),
        ({}, {"machine": [str(broken)], "machine.cache.l2.ways": [4]}, "broken.toml:2: "),
    ]:
        with pytest.raises(soloist.SoloistError, match=words) as caught:
            soloist.sweep(tiny | change, grid, client, tmp_path / "out")
        is_whole(caught.value)
    found = soloist.sweep(tiny, {"task": [5]}, client, tmp_path / "out")
    assert len(found.errors) == 1


def test_no_scheduler_is_told(tiny, tmp_path):
    with pytest.raises(soloist.SoloistError, match="no scheduler of Dask at tcp://127.0.0.1:1"):
        soloist.sweep(tiny, GRID, "tcp://127.0.0.1:1", tmp_path / "out")


def test_two_sweeps_into_one_folder(tiny, client, tmp_path):
    out = tmp_path / "out"
    soloist.sweep(tiny, {"noise.copies": [1]}, client, out)
    with store.Store(out, soloist.version()):
        with pytest.raises(soloist.SoloistError, match=f"another sweep writes here .process {os.getpid()}"):
            soloist.sweep(tiny, GRID, client, out)
    assert soloist.sweep(tiny, GRID, client, out).ran == 6


def test_another_versions_results_stay(tiny, client, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    soloist.sweep(tiny, {"noise.copies": [1, 2]}, client, out)
    old = out / f"version={soloist.version()}"
    old.rename(out / "version=0.0.1-abc")
    found = soloist.sweep(tiny, {"noise.copies": [1, 2]}, client, out)
    assert found.ran == 2 and "2 of 0.0.1-abc cases" in capsys.readouterr().err
    assert store.versions(out) == {"0.0.1-abc": 2, soloist.version(): 2}
    assert soloist.frame(out, "0.0.1-abc")["id"].nunique() == 2
    with pytest.raises(soloist.SoloistError, match="there are: 0.0.1-abc"):
        soloist.frame(out, "9")


def test_a_worker_of_another_version_is_refused(tiny, client, tmp_path, monkeypatch):
    monkeypatch.setattr(_sweep, "version", lambda: "9.9-f")
    with pytest.raises(soloist.SoloistError, match="install the same wheel on all workers"):
        soloist.sweep(tiny, {"noise.copies": [1]}, client, tmp_path / "out")


def test_a_full_disk(tiny, client, tmp_path, monkeypatch):
    out = tmp_path / "out"
    real, calls = os.fsync, []

    def full(file):
        calls.append(file)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(_sweep, "GROUP_SECONDS", 0.001)
    with pytest.raises(soloist.SoloistError, match="No space left on device: what was written before"):
        soloist.sweep(tiny, GRID, client, out)
    monkeypatch.undo()
    kept = soloist.frame(out)["id"].nunique()
    assert kept == 2 and not list(out.rglob(".part-*"))
    assert soloist.sweep(tiny, GRID, client, out).ran == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_really_full(tiny, client, tmp_path):
    out = tmp_path / "disk"
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120k", "none", out], check=True)
    try:
        with pytest.raises(soloist.SoloistError, match="No space left on device"):
            soloist.sweep(tiny, {"used": [i / 200 for i in range(60)]}, client, out)
        kept = soloist.frame(out)["id"].nunique()
        assert kept > 0
        subprocess.run(["mount", "-o", "remount,size=20m", out], check=True)
        found = soloist.sweep(tiny, {"used": [i / 200 for i in range(60)]}, client, out)
        assert found.ran == 60 - kept and found.frame()["id"].nunique() == 60
    finally:
        subprocess.run(["umount", out], check=True)


def test_parts_are_joined_and_read_once(tiny, client, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_MANY", 3)
    monkeypatch.setattr(_sweep, "GROUP_SECONDS", 0.001)
    out = tmp_path / "out"
    found = soloist.sweep(tiny, {"used": [i / 100 for i in range(12)]}, client, out)
    [part] = out.rglob("part-*.parquet")
    # As a crash between joining and removing leaves it.
    pq.write_table(pq.read_table(part, partitioning=None).slice(0, 8), part.with_name("part-0.parquet"))
    assert len(soloist.frame(out)) == len(found.frame()) == pq.read_metadata(part).num_rows
    part.with_name("part-1.parquet").write_bytes(b"nothing")
    with pytest.raises(soloist.SoloistError, match="part-1.parquet: no part .* remove it"):
        soloist.frame(out)


SLOW = {"noise.copies": [1, 2, 3], "used": [i / 100 for i in range(8)]}


def slow(tiny):
    """Some 50 ms of processor time a case."""
    tiny["task"][0]["work"] = 8_000
    return tiny


@pytest.mark.kills
@pytest.mark.parametrize("attempt", range(int(os.environ.get("SOLOIST_KILLS", "1"))))
def test_a_worker_that_is_killed_loses_nothing(tiny, tmp_path, attempt, monkeypatch):
    monkeypatch.setattr(_sweep, "GROUP_SECONDS", 0.3)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                           dashboard_address=None, silence_logs=50)  # fmt: skip
    with cluster, Client(cluster) as client:
        seen = []

        def kill(done, all):
            seen.append(done)
            if len(seen) == 2 + attempt % 5:
                [worker, *_] = client.run(os.getpid).values()
                os.kill(worker, signal.SIGKILL)

        found = soloist.sweep(slow(tiny), SLOW, client, tmp_path / "out", progress=kill)
    assert (found.ran, found.errors) == (24, []) and found.frame()["id"].nunique() == 24


@pytest.mark.kills
@pytest.mark.parametrize("attempt", range(int(os.environ.get("SOLOIST_KILLS", "1"))))
def test_a_scheduler_that_is_killed_loses_nothing_that_was_done(tiny, tmp_path, attempt, monkeypatch):
    monkeypatch.setattr(_sweep, "GROUP_SECONDS", 0.3)
    port, out = 20_000 + os.getpid() % 10_000 + attempt, tmp_path / "out"
    dask = [sys.executable, "-m", "distributed.cli"]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    run = "from distributed.cli.dask_{0} import main; main()"
    dask = [sys.executable, "-c"]
    scheduler = subprocess.Popen(
        [*dask, run.format("scheduler"), "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        **quiet,
    )
    worker = subprocess.Popen(
        [*dask, run.format("worker"), address, "--nthreads", "2", "--no-nanny", "--no-dashboard",
         "--death-timeout", "20"],
        **quiet,
    )  # fmt: skip
    listens(port)
    seen = []

    def kill(done, all):
        seen.append(done)
        if len(seen) == 2 + attempt % 5:
            scheduler.kill()

    try:
        with pytest.raises(soloist.SoloistError, match="scheduler is gone; .* results were kept"):
            soloist.sweep(slow(tiny), SLOW, address, out, progress=kill)
    finally:
        scheduler.kill()
        worker.kill()
        scheduler.wait()
        worker.wait()
    kept = soloist.frame(out)["id"].nunique()
    assert kept >= seen[-1] > 0
    found = soloist.sweep(slow(tiny), SLOW, None, out, workers=1)
    assert found.ran == 24 - kept and found.frame()["id"].nunique() == 24


def listens(port, patience=120):
    """Waits until a scheduler has started; on a busy machine that is longer than a sweep waits."""
    for _ in range(10 * patience):
        with socket.socket() as to:
            if to.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"nothing listens at port {port}")


SCRIPT = """
import json, sys
import soloist
if __name__ == "__main__":
    scenario, grid, out = json.loads(sys.argv[1])
    soloist._sweep.GROUP_SECONDS = 0.3
    soloist.sweep(scenario, grid, None, out, workers=2,
                  progress=lambda done, all: print(done, flush=True))
"""


@pytest.mark.kills
@pytest.mark.parametrize("attempt", range(int(os.environ.get("SOLOIST_KILLS", "1"))))
def test_a_caller_that_is_killed_loses_nothing_that_was_told(tiny, tmp_path, attempt):
    script, out = tmp_path / "sweep.py", tmp_path / "out"
    script.write_text(SCRIPT.replace("soloist._sweep", "__import__('soloist._sweep')._sweep"))
    arguments = json.dumps([slow(tiny), SLOW, str(out)])
    caller = subprocess.Popen(
        [sys.executable, script, arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    told = 0
    for _ in range(2 + attempt % 5):
        told = int(caller.stdout.readline())
    os.killpg(caller.pid, signal.SIGKILL)
    caller.wait()
    kept = soloist.frame(out)["id"].nunique()
    assert kept >= told > 0
    found = soloist.sweep(slow(tiny), SLOW, None, out, workers=1)
    assert found.ran == 24 - kept and found.frame()["id"].nunique() == 24


@pytest.mark.kills
def test_a_case_that_kills_its_workers_is_named(tiny, tmp_path, monkeypatch):
    """The others are run all the same."""
    monkeypatch.setattr(_sweep, "run_group", deadly)
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1",
                           dashboard_address=None, silence_logs=50)  # fmt: skip
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        with cluster, Client(cluster) as client:
            found = soloist.sweep(tiny, {"noise.copies": [1, 2, 3]}, client, tmp_path / "out")
    assert [point for point, _ in found.errors] == [{"noise.copies": 2}]
    assert "every worker that ran it died" in found.errors[0][1] and found.ran == 2


def deadly(base, cases):
    """As run_group, but for one case."""
    from soloist._cases import run_group

    if any(point["noise.copies"] == 2 for _, point in cases):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_group(base, cases)


@pytest.mark.kills
def test_control_c_keeps_what_was_done(tiny, client, tmp_path, monkeypatch):
    monkeypatch.setattr(_sweep, "GROUP_SECONDS", 0.1)
    seen = []

    def stop(done, all):
        seen.append(done)
        if len(seen) == 3:
            threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()

    # A shell's background jobs ignore it, and so would Python.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            soloist.sweep(slow(tiny), SLOW, client, tmp_path / "out", progress=stop)
    finally:
        signal.signal(signal.SIGINT, before)
    time.sleep(0.1)
    kept = soloist.frame(tmp_path / "out")["id"].nunique()
    assert kept >= seen[-1]
    assert soloist.sweep(slow(tiny), SLOW, client, tmp_path / "out").ran == 24 - kept
