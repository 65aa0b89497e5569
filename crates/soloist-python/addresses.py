# SPDX-License-Identifier: MIT OR Apache-2.0
"""How fast addresses are decoded and encoded, on every machine (evidence/sweep.md).

By the wheel that is installed, into arrays that are there already; random lines of the whole
memory; the best of some runs, in millions a second. Beside it a copy of the same addresses.

    addresses.py [RUNS [MACHINE...]]
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import soloist

N = 1 << 21


def best(work: Callable[[], object], runs: int) -> float:
    """Millions of addresses a second."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return N / min(times) / 1e6


def lines(machine: soloist.machine.Machine) -> np.ndarray:
    """Random lines of all ranges, each as often as it is large."""
    ranges = np.array([[start, end] for start, end, _ in machine.ranges], np.uint64)
    ends = np.cumsum(ranges[:, 1] - ranges[:, 0])
    drawn = np.random.default_rng(1).integers(0, ends[-1], N, dtype=np.uint64)
    of = np.searchsorted(ends, drawn, side="right")
    return (ranges[of, 1] - (ends[of] - drawn)) & ~np.uint64(63)


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 30
    print("| machine | ranges | decode, 7 fields | bank alone | encode | copy | encode / copy |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[2:] or soloist.machine.names():
        machine = soloist.machine.load(name)
        addresses = lines(machine)
        places = machine.decode(addresses)
        bank = {"bank": places["bank"]}
        out = np.zeros(N, np.uint64)
        each = [
            best(lambda m=machine, a=addresses, p=places: m.decode(a, out=p), runs),
            best(lambda m=machine, a=addresses, p=bank: m.decode(a, out=p), runs),
            best(lambda m=machine, p=places, o=out: m.encode(p, out=o), runs),
        ]
        assert np.array_equal(out, addresses)
        copy = best(lambda a=addresses, o=out: np.copyto(o, a), runs)
        figures = " | ".join(f"{figure:.0f}" for figure in [*each, copy])
        print(f"| {name} | {len(machine.ranges)} | {figures} | {each[2] / copy:.3f} |", flush=True)


if __name__ == "__main__":
    main()
