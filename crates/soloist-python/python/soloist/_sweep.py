# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: many cases as groups of Dask's tasks.

The caller holds the list of cases and writes each group's results as they come; workers need
no common disk. A few groups for each worker's thread are under way at a time, so that the
scheduler's memory does not grow with the sweep. A group has as many cases as take some seconds
by what earlier ones took, so that Dask's share stays small. When a worker dies, Dask runs its
groups again, and gives up those that were there too often, whichever killed it. Their cases run
again at the end, one by one and alone: who kills a worker then is named.
"""

import math
import multiprocessing
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from . import version
from ._cases import Base, Group, identity, local_machines, of_grid, run_group
from ._native import SoloistError
from ._source import Source, path, scenario_table, told, whole
from .lab import _watched, checked
from .sampling import Grid, Point, points
from .store import Store, versions

#: What a group should take, s: a hundred times what Dask needs for it.
GROUP_SECONDS = 2.0
#: Groups under way for each thread of the workers.
AHEAD = 2
#: Options that say the same as a key of the grid.
_OPTION_OF = {
    "policies": "policies",
    "experiment.repeats": "seeds",
    "experiment.small_repeats": "seeds",
}
#: Without a worker for so long, a sweep says so, s.
PATIENCE = 60.0


@dataclass
class Sweep:
    """What came of a sweep."""

    #: The folder of the results.
    out: str
    #: Version of the package and its model.
    version: str
    #: The points by id of their case, in the order of the grid.
    points: dict[str, Point]
    #: Points that could not be run, and why.
    errors: list[tuple[Point, str]] = field(default_factory=list)
    #: Cases that were run now; the rest was there.
    ran: int = 0
    #: Seconds that this took.
    seconds: float = 0.0
    #: Seconds that workers spent on cases.
    busy: float = 0.0

    def table(self) -> pa.Table:
        """All results of this sweep's points: the columns of `lab.run`, `id`, and the keys."""
        table = Store(self.out, self.version).read(set(self.points))
        order = {case: n for n, case in enumerate(self.points)}
        at = pa.array([order[case] for case in table["id"].to_pylist()], pa.int64())
        indices = pa.compute.sort_indices(pa.table({"at": at}), sort_keys=[("at", "ascending")])
        return table.take(indices)

    def frame(self) -> Any:
        """The same as a DataFrame of pandas."""
        return self.table().to_pandas()

    def __repr__(self) -> str:
        wrong = f", {len(self.errors)} wrong" if self.errors else ""
        return f"<sweep of {len(self.points)} cases in {self.out}: {self.ran} run now{wrong}>"


def sweep(
    scenario: Source,
    grid: Grid,
    engine: Any = None,
    out: str | os.PathLike[str] = "results/",
    *,
    policies: Sequence[str] | None = None,
    seeds: int | None = None,
    seed: int = 1,
    small: bool = False,
    alone: bool = True,
    workers: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Sweep:
    """Runs a scenario at every point of a grid; results go to Parquet files as they come.

    Parameters
    ----------
    scenario
        As `lab.run` takes it. Its claims and plot are left out.
    grid
        A mapping of keys to lists, ranges or `between` with steps, of which all combinations
        are run; or a list of points: `random`, `latin_hypercube`. A key is one of a scenario
        file, such as ``"attacker.bytes"`` (task and field), ``"machine"``,
        ``"machine.cache.l2.ways"``, ``"model.controller.bank_queue"`` or ``"policies"``.
    engine
        None: all cores of this machine (`workers` of them). A scheduler's address
        (``"tcp://host:8786"``), a `distributed.Client`, or a cluster, such as
        `dask_jobqueue.SLURMCluster`. Workers need the same wheel, and no common disk but for
        recordings.
    out
        The folder of the results. What is there of the same case, machine and version is not
        run again: a sweep that was stopped is called again as it was.
    policies, seeds, seed, small, alone
        As `lab.run` has them.
    progress
        As `lab.run` has it, in cases.

    Returns
    -------
    A `Sweep`. ``frame()`` reads its results; ``errors`` lists the points that could not be
    run, each with file, line and reason: they stop no others.
    """
    _refuse_inner()
    if workers is not None:
        whole("workers", workers, 1, 1 << 12)
    # What is wrong in all cases is told once.
    given = {"policies": policies, "seeds": seeds, "seed": seed, "small": small, "alone": alone}
    options = checked(given | {"threads": 1})
    base, listed = _plan(scenario, points(grid), options)
    found = Sweep(path("out", out), base.version, listed)
    with Store(out, base.version) as store:
        done = store.done() & set(listed)
        _tell_others(store)
        missing = [(case, point) for case, point in listed.items() if case not in done]
        if missing:
            with _Engine(engine, workers, len(missing)) as client:
                _Run(client, base, store, found, progress).all(missing)
    if found.errors:
        _say(_wrong(found))
    return found


def _wrong(found: Sweep) -> str:
    point, words = found.errors[0]
    n = len(found.errors)
    return f"{n} of {len(found.points)} cases could not be run; the first, {point}: {words}"


def _say(text: str) -> None:
    print(f"soloist: {text}", file=sys.stderr)


def _refuse_inner() -> None:
    """A script without a guard is run again by each worker that it starts."""
    if multiprocessing.parent_process() is not None and "__mp_main__" in sys.modules:
        raise SystemExit(
            "soloist: a worker ran the script that starts it: put what the script does under "
            "`if __name__ == '__main__':`"
        )


def _plan(
    scenario: Source, at: list[Point], options: dict[str, Any]
) -> tuple[Base, dict[str, Point]]:
    """The base of all cases, and the points by the id of their case."""
    _refuse_twice(at, options)
    table = scenario_table(scenario)
    # Claims name the cases of the file.
    table.pop("claim", None)
    table.pop("plot", None)
    named = ("machine", "experiment.machine")
    names = {str(point[key]) for point in at for key in named if key in point}
    names.add(str(table.get("experiment", {}).get("machine", "")))
    base = Base(table, options, local_machines(names), version())
    recordings: dict[str, str] = {}
    return base, {identity(base, point, recordings): point for point in at}


def _refuse_twice(at: list[Point], options: dict[str, Any]) -> None:
    """An option holds for all cases: a column with other values would be wrong."""
    for key, option in _OPTION_OF.items():
        if options[option] is not None and any(key in point for point in at):
            raise of_grid(key, f"the option {option!r} says it too: leave one of them out")


def _tell_others(store: Store) -> None:
    others = {v: n for v, n in versions(store.out).items() if v != store.version}
    if others:
        listed = ", ".join(f"{n} of {v}" for v, n in others.items())
        _say(f"{store.out}: results of other versions stay and are not used ({listed} cases); "
             f"these will be of {store.version}")  # fmt: skip


class _Engine:
    """A client of Dask: one that is given, or one that ends with the sweep."""

    def __init__(self, engine: Any, workers: int | None, cases: int) -> None:
        self._engine, self._workers, self._cases = engine, workers, cases
        self._own: list[Any] = []

    def __enter__(self) -> Any:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise told("sweeps need Dask: pip install 'soloist[sweep]'") from None
        if isinstance(self._engine, Client):
            return self._engine
        at = self._engine
        if at is None:
            cores = self._workers or len(os.sched_getaffinity(0))
            at = LocalCluster(
                n_workers=min(cores, self._cases),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
            )
            self._own.append(at)
        try:
            client = Client(at, timeout="10s")
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            self.__exit__()
            raise told(f"no scheduler of Dask at {at}: {error}") from None
        self._own.insert(0, client)
        if client.dashboard_link:
            _say(f"dashboard: {client.dashboard_link}")
        return client

    def __exit__(self, *_: object) -> None:
        for each in self._own:
            try:
                each.close()
            except Exception as error:  # noqa: BLE001
                _say(f"closing Dask: {error}")


class _Run:
    """A sweep that is under way."""

    def __init__(
        self, client: Any, base: Base, store: Store, found: Sweep, progress: Any
    ) -> None:
        self.client, self.base, self.store, self.found = client, base, store, found
        self.pending: deque[tuple[str, Point]] = deque()
        self.flying: dict[Any, list[tuple[str, Point]]] = {}
        self.per_case: float | None = None
        self.finished = 0
        self.suspects: deque[tuple[str, Point]] = deque()
        self.tried: set[str] = set()
        self.slots = 1
        self.told = _progress(progress)
        self.idle_since = time.monotonic()

    def all(self, missing: list[tuple[str, Point]]) -> None:
        """Runs all; on whatever goes wrong, what was done is kept."""
        from distributed import as_completed

        began = time.perf_counter()
        self.pending.extend(missing)
        ready = as_completed(with_results=True, raise_errors=False)
        try:
            while self.pending or self.flying or self.suspects:
                self._submit(ready)
                batch = ready.next_batch(block=False) if self.flying else []
                for future, result in batch:
                    self._take(future, result, len(missing))
                if not batch:
                    self._look()
                    time.sleep(0.01)
        finally:
            self._cancel()
            self.told(None, 0)
            self.found.seconds = time.perf_counter() - began
        self.store.join()

    def _slots(self) -> int:
        try:
            return sum(self.client.nthreads().values())
        except (OSError, TimeoutError):
            return 0

    def _submit(self, ready: Any) -> None:
        """Keeps every thread busy, with something in hand."""
        if self.suspects and not self.pending and not self.flying:
            self._send(ready, [self.suspects.popleft()])
        if not self.pending or len(self.flying) >= AHEAD * self.slots:
            return
        self.slots = max(self._slots(), 1)
        while self.pending and len(self.flying) < AHEAD * self.slots:
            group = [self.pending.popleft() for _ in range(self._size())]
            self._send(ready, group)

    def _send(self, ready: Any, group: list[tuple[str, Point]]) -> None:
        future = self.client.submit(run_group, self.base, group, pure=False)
        self.flying[future] = group
        ready.add(future)

    def _size(self) -> int:
        """Cases of the next group: enough to be worth it, and some for everyone at the end."""
        if self.per_case is None:
            return 1
        worth = math.ceil(GROUP_SECONDS / max(self.per_case, 1e-4))
        fair = math.ceil(len(self.pending) / (4 * self.slots))
        return max(1, min(worth, fair, len(self.pending)))

    def _take(self, future: Any, result: Any, all: int) -> None:
        group = self.flying.pop(future, None)
        if group is None:
            return
        self.idle_since = time.monotonic()
        if future.status == "finished":
            self._keep(result, len(group), all)
        elif future.status == "error":
            self._failed(result[1], group, all)
        else:
            self.pending.extend(group)
            self._look(lost=True)

    def _keep(self, group: Group, cases: int, all: int) -> None:
        points = self.found.points
        if group.table is not None:
            self.store.write(group.table)
        self.found.errors.extend((points[case], words) for case, words in group.errors)
        self.found.busy += group.seconds
        self.found.ran += cases - len(group.errors)
        each = group.seconds / cases
        self.per_case = each if self.per_case is None else 0.7 * self.per_case + 0.3 * each
        self._count(cases, all)

    def _failed(self, error: BaseException, group: list[tuple[str, Point]], all: int) -> None:
        """A group that came to nothing: what ran alone is at fault, all others are suspects."""
        if isinstance(error, SoloistError):
            raise error
        if self.pending or self.flying or len(group) > 1 or group[0][0] not in self.tried:
            self.suspects.extend(group)
            self.tried.update(case for case, _ in group)
            return
        [(_, point)] = group
        self.found.errors.append((point, _of_worker(error)))
        self._count(1, all)

    def _count(self, cases: int, all: int) -> None:
        self.finished += cases
        self.told(self.finished, all)

    def _look(self, lost: bool = False) -> None:
        """Is the scheduler there, and has it workers?"""
        if lost or self.client.status not in ("running", "connecting"):
            kept = f"{self.found.ran} results were kept in {self.store.out}"
            raise told(
                f"Dask's scheduler is gone; {kept}: call sweep() again, which runs only what is "
                "missing"
            )
        idle = time.monotonic() - self.idle_since
        if idle > PATIENCE and self._slots() == 0:
            self.idle_since = time.monotonic()
            _say(f"no worker at {self.client.scheduler.address} for {PATIENCE:.0f} s: start "
                 "some, or see why they do not")  # fmt: skip

    def _cancel(self) -> None:
        if self.flying and self.client.status == "running":
            self.client.cancel(list(self.flying), force=True)
        self.flying.clear()


def _of_worker(error: BaseException) -> str:
    """What is known of a case that no worker survived, or that raised elsewhere."""
    if type(error).__name__ == "KilledWorker":
        return "every worker that ran it died (of memory, or by a signal); see Dask's log"
    return f"{type(error).__name__}: {error}"


def _progress(progress: Any) -> Callable[[int | None, int], None]:
    """Tells the cases that are done; None ends it."""
    if callable(progress):
        return lambda done, all: None if done is None else progress(done, all)
    if progress is False or (progress is None and not _watched()):
        return lambda done, all: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return lambda done, all: None
    bar = tqdm(unit="case", file=sys.stderr)

    def tell(done: int | None, all: int) -> None:
        if done is None:
            bar.close()
            return
        bar.total = all
        bar.update(done - bar.n)

    return tell
