# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recorded programs (``soloist-lab vm record``) as Arrow batches."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from . import _native
from ._source import path, told, whole

_KINDS = ["read", "write", "fetch", "write-back"]

#: A line that left the private caches. `virt` and `phys` are byte addresses of lines, as the
#: recording's guest had them; `work` is the number of instructions since the line before.
SCHEMA = pa.schema(
    [
        ("cpu", pa.uint32()),
        ("thread", pa.uint32()),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("virt", pa.uint64()),
        ("phys", pa.uint64()),
        ("work", pa.uint32()),
        ("kernel", pa.bool_()),
        ("dependent", pa.bool_()),
    ]
)


def about(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """What a recording is of: its programs, caches, machine and streams."""
    found: dict[str, Any] = json.loads(_native.record_about(path("directory", directory)))
    return found


def read(
    directory: str | os.PathLike[str],
    *,
    cpus: list[int] | None = None,
    batch: int = 65_536,
) -> pa.RecordBatchReader:
    """The lines of a recording, processor by processor, in the order of their events.

    Parameters
    ----------
    directory
        What ``soloist-lab vm record`` or ``sim import`` wrote.
    cpus
        Only these processors' streams.
    batch
        Most rows of a batch.

    Returns
    -------
    A reader of batches with the columns of `SCHEMA`: ``for batch in reader``, or
    ``reader.read_all()`` for one table. Only a few batches are in memory at a time. Of a
    damaged stream all that is intact comes first, then the error.
    """
    batch = whole("batch", batch, 1, 1 << 31)
    streams = about(directory)["streams"]
    if cpus is not None:
        if not isinstance(cpus, Iterable):
            raise told(f"cpus={cpus!r}: expected a list of numbers")
        cpus = list(cpus)
        known = [stream["cpu"] for stream in streams]
        lost = [cpu for cpu in cpus if cpu not in known]
        if lost:
            raise told(f"no stream of cpu {lost[0]}; there are: {known}", str(directory))
        streams = [stream for stream in streams if stream["cpu"] in cpus]
    batches = _batches(Path(directory), streams, batch)
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def _batches(directory: Path, streams: list[Any], rows: int) -> Iterator[pa.RecordBatch]:
    for stream in streams:
        for n, columns in _native.Events(str(directory), stream["cpu"], rows):
            yield _batch(stream["cpu"], n, columns)


def _batch(cpu: int, n: int, columns: list[bytes]) -> pa.RecordBatch:
    thread, kind, virt, phys, work, kernel, dependent = columns

    def flat(kind: pa.DataType, data: bytes) -> pa.Array:
        return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(data)])

    def flags(data: bytes) -> pa.Array:
        return pa.array(np.frombuffer(data, np.uint8).astype(bool))

    return pa.record_batch(
        [
            pa.array(np.full(n, cpu, np.uint32)),
            flat(pa.uint32(), thread),
            pa.DictionaryArray.from_arrays(flat(pa.int8(), kind), _KINDS),
            flat(pa.uint64(), virt),
            flat(pa.uint64(), phys),
            flat(pa.uint32(), work),
            flags(kernel),
            flags(dependent),
        ],
        schema=SCHEMA,
    )
