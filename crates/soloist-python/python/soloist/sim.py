# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests in arrays, played on a machine's memory controllers (``soloist-lab sim trace``)."""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from . import _native
from ._source import flag, path, told, whole
from .machine import _whole

_OUTCOMES = ["hit", "miss", "conflict", "buffered"]


def trace(
    addresses: ArrayLike | Sequence[ArrayLike],
    writes: Any = None,
    cycles: Any = None,
    *,
    machine: str | os.PathLike[str],
    outstanding: int = 0,
    latencies: bool = False,
    check: bool = False,
) -> dict[str, Any]:
    """Plays requests on the controllers and DRAM of a machine, without caches.

    Parameters
    ----------
    addresses
        Physical addresses, bytes, shape (n,). Several sources that run together are a list
        of arrays; `writes` and `cycles` are lists of as many then.
    writes
        Shape (n,): true where the request is a write. None: all are reads.
    cycles
        Shape (n,), ascending: the cycle of the memory clock before which a request does not
        arrive. None: as fast as the controller takes them.
    machine
        A name or the path of a machine file.
    outstanding
        Reads that a source may have outstanding; 0: as many as the queues hold.
    latencies
        Also returns a table of all requests.
    check
        Checks each DRAM command against the rules of the data sheet.

    Returns
    -------
    What ``soloist-lab sim trace --json`` prints: requests, ``latency_ns`` and
    ``latency_cycles`` (average, p50, p95, p99, max), ``row_hits``, ``row_conflicts``,
    ``makespan_ns``, ``bandwidth_bytes_per_second``, and ``sources`` where there are several.
    With `latencies` also ``requests_table``, an Arrow table with a row for each request in the
    order of their ends: source, write, arrival and end (cycles), outcome.
    """
    many = isinstance(addresses, (list, tuple)) and any(np.ndim(a) for a in addresses)
    sources = []
    listed: Any = addresses
    if not many:
        listed, writes, cycles = [addresses], [writes], [cycles]
    for name, given in (("writes", writes), ("cycles", cycles)):
        if given is not None and not (isinstance(given, (list, tuple)) and len(given) == len(listed)):
            raise told(f"{name}: expected a list of {len(listed)} arrays, one a source")
    for i, one in enumerate(listed):
        wrote = writes[i] if writes is not None else None
        when = cycles[i] if cycles is not None else None
        sources.append(_source(one, wrote, when))
    reads = whole("outstanding", outstanding, 0, 1 << 32)
    latencies = flag("latencies", latencies)
    report, checked, ends = _native.trace(
        path("machine", machine), sources, reads, latencies, flag("check", check)
    )
    found: dict[str, Any] = json.loads(report)
    if checked is not None:
        found["commands_checked"] = checked
    if latencies:
        source, write, arrival, end, outcome = ends
        codes = pa.array(np.frombuffer(bytes(outcome), np.int8))
        found["requests_table"] = pa.table(
            {
                "source": pa.array(source, pa.uint32()),
                "write": np.frombuffer(bytes(write), np.uint8).astype(bool),
                "arrival": pa.array(arrival, pa.uint64()),
                "end": pa.array(end, pa.uint64()),
                "outcome": pa.DictionaryArray.from_arrays(codes, _OUTCOMES),
            }
        )
    return found


def _source(addresses: ArrayLike, writes: Any, cycles: Any) -> tuple[Any, Any, Any]:
    addrs = _whole(addresses, np.uint64, "addresses")
    if addrs.ndim != 1:
        raise told(f"addresses: expected shape (n,), not {addrs.shape}")
    wrote = np.zeros(len(addrs), np.uint8)
    if writes is not None:
        flags = np.asarray(writes)
        if flags.dtype.kind not in "biu" and flags.size > 0:
            raise told(f"writes: expected true or false, not {flags.dtype}")
        # Cycles in their place would be all true.
        if flags.dtype.kind != "b" and flags.size > 0 and not ((flags == 0) | (flags == 1)).all():
            raise told("writes: expected true or false, 1 or 0; cycles come behind them")
        wrote = np.require(flags.astype(bool), requirements=["C"]).view(np.uint8)
    when = None if cycles is None else _whole(cycles, np.uint64, "cycles")
    for name, array in (("writes", wrote), ("cycles", when)):
        if array is not None and array.shape != addrs.shape:
            raise told(f"{name}: shape {array.shape}, but addresses have {addrs.shape}")
    if when is not None and len(when) == 0:
        when = None
    return addrs, wrote, when
