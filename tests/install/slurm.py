# SPDX-License-Identifier: MIT OR Apache-2.0
"""A sweep whose workers are jobs of Slurm; one of the jobs is cancelled in the middle."""

import subprocess

from dask_jobqueue import SLURMCluster
from smoke import SCENARIO

import soloist

GRID = {"noise.copies": [1, 2, 3], "used": [n / 100 for n in range(20)]}


def jobs() -> list[str]:
    """Ids of the jobs that run."""
    said = subprocess.run(
        ["squeue", "-h", "-t", "running", "-o", "%i"], check=True, capture_output=True, text=True
    )
    return said.stdout.split()


def main() -> None:
    cancelled = []

    def cancel(done: int, all: int) -> None:
        if not cancelled and done >= 3:
            cancelled.extend(jobs()[:1])
            subprocess.run(["scancel", *cancelled], check=True)

    cluster = SLURMCluster(cores=1, processes=1, memory="400MB", walltime="00:10:00",
                           interface="lo", scheduler_options={"interface": "lo"})  # fmt: skip
    with cluster:
        cluster.adapt(minimum_jobs=1, maximum_jobs=2)
        sweep = soloist.sweep(SCENARIO, GRID, cluster, "slurm", progress=cancel)
    assert cancelled, "no job of Slurm was seen"
    assert (sweep.ran, sweep.errors) == (60, []), sweep.errors
    assert sweep.frame()["id"].nunique() == 60
    print(f"60 cases in {sweep.seconds:.0f} s; job {cancelled[0]} was cancelled")


if __name__ == "__main__":
    main()
