# SPDX-License-Identifier: MIT OR Apache-2.0
"""What Dask costs a sweep: cases of a known length, on 1 and 2 workers (evidence/sweep.md).

A case sleeps, so that nothing but the sweep's own work and Dask's is measured, whatever else the
machine does. `scale.py real` runs cases of the lab instead, which share the machine's caches and
memory.
"""

import sys
import tempfile
import time

import pyarrow as pa
import soloist
import soloist._sweep as engine
from distributed import Client, LocalCluster
from soloist._cases import Group

SCENARIO = {
    "policies": ["buddy"],
    "experiment": {"id": "scale", "title": "Scale", "machine": "raspberry-pi-4"},
    "task": [{"name": "a", "kind": "latency", "cpus": "0", "bytes": "1M", "work": 1}],
}


def sleeper(length: float):
    """Stands for `run_group`: each case takes `length` seconds and gives a row."""

    def group(base, cases):
        began = time.perf_counter()
        for _ in cases:
            time.sleep(length)
        rows = pa.table({"id": [case for case, _ in cases], "time": [length] * len(cases)})
        return Group(rows, [], time.perf_counter() - began)

    return group


REAL = {
    "policies": ["buddy", "mem"],
    "experiment": {"id": "real", "title": "Real", "machine": "raspberry-pi-4"},
    "task": [
        {"name": "victim", "kind": "latency", "cpus": "0", "bytes": "4M", "work": 4000},
        {"name": "reader", "kind": "random-read", "cpus": "1-3", "copies": 3, "bytes": "4M",
         "work": 1, "background": True},
    ],
}  # fmt: skip


def real() -> None:
    """Cases of the lab, by both numbers of workers in turn."""
    print("| workers | cases | wall, s | in cases, s | efficiency | cases a second |")
    print("|---|---|---|---|---|---|")
    grid = {"used": [n / 100 for n in range(60)]}
    for workers in (1, 2, 1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1",
                               dashboard_address="127.0.0.1:0")  # fmt: skip
        with cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as out:
            found = soloist.sweep(REAL, grid, client, out, seeds=1)
            share = found.busy / (found.seconds * workers)
            print(f"| {workers} | {found.ran} | {found.seconds:.1f} | {found.busy:.1f} | {share:.1%} | "
                  f"{found.ran / found.seconds:.1f} |", flush=True)  # fmt: skip


def main() -> None:
    if sys.argv[1:] == ["real"]:
        return real()
    print("| case, s | workers | cases | wall, s | efficiency | overhead a case, ms |")
    print("|---|---|---|---|---|---|")
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1",
                               dashboard_address="127.0.0.1:0")  # fmt: skip
        with cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as out:
            for length, cases in ((0.1, 200 * workers), (1.0, 20 * workers), (10.0, 2 * workers)):
                engine.run_group = sleeper(length)
                grid = {"a.work": [int(length * 10_000) + i for i in range(cases)]}
                found = soloist.sweep(SCENARIO, grid, client, out)
                lost = found.seconds * workers - cases * length
                share = cases * length / (found.seconds * workers)
                print(f"| {length:g} | {workers} | {cases} | {found.seconds:.1f} | {share:.1%} | "
                      f"{1000 * lost / cases:.0f} |")  # fmt: skip
                sys.stdout.flush()


if __name__ == "__main__":
    main()
