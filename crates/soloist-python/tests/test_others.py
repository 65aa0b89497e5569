# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces, recordings and plans."""

import json
import struct
import subprocess
import zlib

import numpy as np
import pyarrow as pa
import pytest
import soloist
from conftest import TOP, is_whole


def test_a_trace_is_the_command_lines(soloist_lab, tmp_path):
    rng = np.random.default_rng(3)
    addresses = rng.integers(0, 1 << 30, 5000, dtype=np.uint64) & ~np.uint64(63)
    writes = rng.random(5000) < 0.3
    cycles = np.arange(5000, dtype=np.uint64) * 4
    ours = soloist.sim.trace(addresses, writes, cycles, machine="ddr3-1600k", check=True)
    file = tmp_path / "requests.txt"
    lines = zip(addresses, writes, cycles, strict=True)
    file.write_text("".join(f"{a:#x} {'WRITE' if w else 'READ'} {c}\n" for a, w, c in lines))
    said = subprocess.run(
        [soloist_lab, "sim", "trace", "--machine", "ddr3-1600k", "--check", "--json", file],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    theirs = json.loads(said.stdout)
    assert {key: theirs[key] for key in ours} == ours
    assert ours["requests"] == 5000 and ours["writes"] == writes.sum()


def test_a_trace_of_two_sources_with_latencies():
    both = [np.arange(500, dtype=np.uint64) * 64, np.arange(300, dtype=np.uint64) * 8192]
    found = soloist.sim.trace(both, machine="ddr3-1600k", latencies=True)
    table = found["requests_table"]
    assert len(table) == 800 and len(found["sources"]) == 2
    assert set(table["outcome"].to_pylist()) <= {"hit", "miss", "conflict", "buffered"}
    mean = np.mean(np.asarray(table["end"]) - np.asarray(table["arrival"]))
    assert mean == pytest.approx(found["latency_cycles"]["average"])


def test_wrong_traces_are_refused():
    for arguments, words in [
        (([0], [True, False]), "writes: shape"),
        (([[0, 1]], None, None), None),
        ((np.zeros((2, 2), np.uint64),), "expected shape"),
        (([1 << 45], None, None), "request"),
    ]:
        if words:
            with pytest.raises(soloist.SoloistError, match=words) as caught:
                soloist.sim.trace(*arguments, machine="opteron-6128")
            is_whole(caught.value)


def test_wrong_words_of_traces():
    one = np.arange(4, dtype=np.uint64)
    for given, options, words in [
        (one, {"machine": None}, "machine=None: expected a name"),
        (one, {"outstanding": -1}, "outstanding=-1: expected a number from 0"),
        (one, {"writes": ["no"] * 4}, "writes: expected true or false"),
        (one, {"cycles": [0.0, 1.0, 2.0, float("nan")]}, "cycles: expected whole numbers"),
        ([one, one], {"writes": True}, "writes: expected a list of 2 arrays"),
        ([one, one], {"cycles": [None]}, "cycles: expected a list of 2 arrays"),
        (one, {"writes": one}, "writes: expected true or false, 1 or 0; cycles come behind"),
        (one, {"check": "false"}, "check='false': expected true or false"),
        (one, {"latencies": 1}, "latencies=1: expected true or false"),
    ]:
        with pytest.raises(soloist.SoloistError, match=words) as caught:
            soloist.sim.trace(given, **{"machine": "ddr3-1600k"} | options)
        is_whole(caught.value)


def imported(soloist_lab, trace, out):
    """The trace as a recording in `out`."""
    subprocess.run(
        [soloist_lab, "sim", "import", "--format", "ramulator", "-o", out, trace],
        check=True, capture_output=True,
    )  # fmt: skip
    return out


@pytest.fixture
def recording(soloist_lab, tmp_path):
    """A trace of another tool as a recording."""
    trace = tmp_path / "t.trace"
    lines = [f"{0x1000_0000 + i * 4160:#x} {'W' if i % 3 == 0 else 'R'}\n" for i in range(2000)]
    trace.write_text("".join(lines))
    return imported(soloist_lab, trace, tmp_path / "t.rec")


def test_a_recording_is_read_in_batches(recording):
    about = soloist.record.about(recording)
    batches = list(soloist.record.read(recording, batch=500))
    assert max(len(batch) for batch in batches) == 500
    table = soloist.record.read(recording).read_all()
    assert len(table) == sum(stream["lines"] for stream in about["streams"]) > 1000
    assert table.schema == soloist.record.SCHEMA
    pages = np.asarray(table["virt"]) >> np.uint64(12)
    assert len(np.unique(pages)) > 1000
    assert {"read", "write-back"} <= set(table["kind"].to_pylist())


def test_a_damaged_recording_gives_what_is_intact(recording):
    stream = recording / soloist.record.about(recording)["streams"][0]["file"]
    stream.write_bytes(stream.read_bytes()[:-7])
    with pytest.raises(soloist.SoloistError, match="damaged at byte"):
        soloist.record.read(recording).read_all()
    with pytest.raises(soloist.SoloistError, match="no stream of cpu 99"):
        soloist.record.read(recording, cpus=[99])
    for options, words in [({"batch": 0}, "batch=0: expected a number from 1"), ({"cpus": 0}, "a list")]:
        with pytest.raises(soloist.SoloistError, match=words):
            soloist.record.read(recording, **options)
    with pytest.raises(soloist.SoloistError, match="no recording"):
        soloist.record.read(recording / "nowhere")


def frames(stream):
    """Header and frames of a stream."""
    data = stream.read_bytes()
    found, at = [data[:16]], 16
    while at < len(data):
        end = at + 20 + int.from_bytes(data[at + 8 : at + 12], "little")
        found.append(data[at:end])
        at = end
    return found


@pytest.fixture
def long_recording(soloist_lab, tmp_path):
    """One of several frames: new pages come to the end, and old ones again."""
    trace = tmp_path / "long.trace"
    some = (i if i % 2 else i * 7919 % (i + 1) for i in range(400_000))
    trace.write_text("".join(f"{0x1000_0000 + i * 4160:#x} R\n" for i in some))
    return imported(soloist_lab, trace, tmp_path / "long.rec")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f[: len(f) // 2], "the stream ends here with"),
        (lambda f: [*f[:1], *f[2:]], "page that the stream never named"),
        (lambda f: [f[0], f[2], f[1], *f[3:]], "page that the stream never named"),
        (lambda f: [*f, f[1]], "as recording.json says"),
        (lambda f: [f[0][:12] + b"\x01\0\0\0", *f[1:]], "the stream of cpu 1, not of cpu 0"),
    ],
    ids=["cut", "lost", "swapped", "doubled", "another"],
)
def test_whole_frames_that_are_not_in_place_are_told(long_recording, change, words):
    stream = long_recording / soloist.record.about(long_recording)["streams"][0]["file"]
    whole = frames(stream)
    assert len(whole) > 3
    stream.write_bytes(b"".join(change(whole)))
    with pytest.raises(soloist.SoloistError, match=words):
        soloist.record.read(long_recording).read_all()


def frame(raw, records):
    """A frame whose checks are right, whatever it holds."""
    payload = pa.compress(raw, codec="zstd", asbytes=True)
    fields = struct.pack("<III", len(raw), len(payload), records)
    return b"SRFR" + fields + struct.pack("<I", zlib.crc32(fields + payload)) + payload


def test_a_page_beyond_all_numbers_is_no_end(recording):
    """Where the reader refuses it, and where it dies of it."""
    stream = recording / soloist.record.about(recording)["streams"][0]["file"]
    access, page = bytes([0]), bytes([4, 2, 2, 0])
    # To page 1, and from there so far that the sum of both has no number.
    far = bytes([0xFE, *[0xFF] * 8, 1])
    raw = page + page + access + bytes([2, 0, 0]) + access + far + bytes([0, 0])
    stream.write_bytes(frames(stream)[0] + frame(raw, 4))
    with pytest.raises((soloist.SoloistError, RuntimeError)):
        soloist.record.read(recording).read_all()


def test_the_end_of_a_stream_stays_the_end(recording):
    cpu = soloist.record.about(recording)["streams"][0]["cpu"]
    events = soloist._native.Events(str(recording), cpu, 500)
    assert len(list(events)) > 1
    assert list(events) == list(events) == []


def test_a_plan_is_the_command_lines(soloist_lab):
    file = TOP / "docs/examples/two-tasks-edf.toml"
    ours = soloist.plan(file, "raspberry-pi-4")
    said = subprocess.run(
        [soloist_lab, "plan", file, "--machine", "raspberry-pi-4", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert json.loads(said.stdout) == ours


def test_a_wrong_task_set_has_its_line(tmp_path):
    with pytest.raises(soloist.SoloistError, match="needs `wcet`.*at `name = "):
        soloist.plan({"task": [{"name": "a", "period": "10 ms"}]}, "raspberry-pi-4")
    with pytest.raises(soloist.SoloistError, match="seed=-1"):
        soloist.plan({}, "raspberry-pi-4", seed=-1)
    file = tmp_path / "tasks.toml"
    file.write_text('[[task]]\nname = "a"\nperiod = "10 ms"\nwcet = "1 ms"\n')
    with pytest.raises(soloist.SoloistError, match="no machine is named") as caught:
        soloist.plan(file)
    assert (caught.value.file, caught.value.line) == (str(file), 1)
