# SPDX-License-Identifier: MIT OR Apache-2.0
"""A sweep whose workers are two jobs of Slurm; one of them is cancelled in the middle."""

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
        both = [] if cancelled else jobs()
        if len(both) == 2:
            cancelled.append(both[0])
            subprocess.run(["scancel", *cancelled], check=True)

    # Enough that the second job comes before the end.
    SCENARIO["task"][0]["work"] = 20_000

    cluster = SLURMCluster(cores=1, processes=1, memory="400MB", walltime="00:10:00",
                           interface="lo", scheduler_options={"interface": "lo"})  # fmt: skip
    with cluster:
        cluster.adapt(minimum_jobs=1, maximum_jobs=2, target_duration="1s")
        sweep = soloist.sweep(SCENARIO, GRID, cluster, "slurm", progress=cancel)
    assert cancelled, "no two jobs of Slurm ran at once"
    assert (sweep.ran, sweep.errors) == (60, []), sweep.errors
    assert sweep.frame()["id"].nunique() == 60
    print(f"60 cases in {sweep.seconds:.0f} s; job {cancelled[0]} was cancelled")


if __name__ == "__main__":
    main()
