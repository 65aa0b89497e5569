# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a newcomer does first with the wheel; with the word `all`, a sweep, too."""

import sys

import numpy as np

import soloist

SCENARIO = {
    "policies": ["buddy", "camc"],
    "experiment": {"id": "smoke", "title": "Smoke", "machine": "raspberry-pi-4", "repeats": 1},
    "task": [
        {"name": "victim", "kind": "latency", "cpus": "0", "bytes": "2M", "work": 2000},
        {"name": "noise", "kind": "bandwidth-read", "cpus": "1-3", "copies": 1, "bytes": "2M",
         "work": 1, "background": True},
    ],
}  # fmt: skip


def main() -> None:
    table = soloist.lab.run(SCENARIO)
    assert len(table) == 4 and min(table["time"].to_pylist()) > 0
    machine = soloist.machine.load("opteron-6128")
    addresses = np.arange(0, 1 << 20, 64, dtype=np.uint64)
    assert np.array_equal(machine.encode(machine.decode(addresses)), addresses)
    assert soloist.sim.trace(addresses, machine="ddr3-1600k")["requests"] == len(addresses)
    if sys.argv[1:] != ["all"]:
        return
    sweep = soloist.sweep(SCENARIO, {"noise.copies": [1, 2, 3]}, out="results", workers=1)
    assert sweep.ran == 3
    assert soloist.chart.slowdown(sweep.frame(), "noise.copies").to_dict()


if __name__ == "__main__":
    main()
