# SPDX-License-Identifier: MIT OR Apache-2.0
"""The folder of a sweep's results.

Results lie in ``version=V/part-*.parquet``, a column ``id`` naming each row's case: a hash of
scenario, machine, options, labels and version. A part is written beside its place and renamed, so it
is there as a whole or not at all. Small parts are joined now and then; what a crash between
the two leaves twice is read once. One sweep writes into a folder at a time.
"""

import fcntl
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ._source import told

#: So many parts are joined.
_MANY = 200


class Store:
    """The results of one version in a folder; only one of them can be open for writing."""

    def __init__(self, out: str | os.PathLike[str], version: str) -> None:
        self.out = Path(out)
        self.version = version
        self.folder = self.out / f"version={version}"
        self._lock: int | None = None

    def __enter__(self) -> "Store":
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.out / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise told(error.strerror or str(error), str(self.out)) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            whose = os.pread(self._lock, 200, 0).decode(errors="replace").strip()
            os.close(self._lock)
            self._lock = None
            raise told(
                f"another sweep writes here ({whose or 'unknown'}): wait for it, or "
                "name another folder with out=",
                str(self.out),
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        for left in self.folder.glob(".part-*"):
            left.unlink(missing_ok=True)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def done(self) -> set[str]:
        """Ids of the cases that are here."""
        return {i for part in self._parts() for i in _read(part, ["id"])["id"].to_pylist()}

    def write(self, table: pa.Table) -> None:
        """Adds the rows of whole cases.

        Raises `SoloistError` where the disk is full; what was here before is intact.
        """
        if len(self._parts()) >= _MANY:
            self.join()
        self._put(table)

    def join(self) -> None:
        """Makes one part of all."""
        parts = self._parts()
        if len(parts) > 1:
            self._put(self.read())
            for part in parts:
                part.unlink(missing_ok=True)

    def read(self, ids: set[str] | None = None) -> pa.Table:
        """All rows, or those of some cases."""
        tables = list(_once(self._parts(), ids))
        if not tables:
            return pa.table({"id": pa.array([], pa.string())})
        return concat(tables)

    def _put(self, table: pa.Table) -> None:
        name = f"part-{uuid.uuid4().hex}.parquet"
        beside = self.folder / f".{name}"
        try:
            with beside.open("wb") as file:
                pq.write_table(table, file)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(self.folder / name)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise told(
                f"{error.strerror or error}: what was written before is intact; make "
                "room and call sweep() again, which runs only what is missing",
                str(self.out),
            ) from error

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))


def frame(out: str | os.PathLike[str], version: str | None = None) -> Any:
    """All results of a folder as a DataFrame of pandas, whichever sweep they are of.

    `version` is this package's and its model's (`soloist.version`) unless another is named;
    `versions` lists those in a folder.
    """
    from . import version as ours

    wanted = ours() if version is None else version
    there = versions(out)
    if wanted not in there:
        others = ", ".join(there) or "none"
        raise told(f"no results of version {wanted}; there are: {others}", str(out))
    return Store(out, wanted).read().to_pandas()


def versions(out: str | os.PathLike[str]) -> dict[str, int]:
    """The versions whose results a folder holds, with the number of cases of each."""
    found = {}
    for folder in sorted(Path(out).glob("version=*")):
        version = folder.name.removeprefix("version=")
        cases = len(Store(out, version).done())
        if cases:
            found[version] = cases
    return found


def _read(part: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(part, columns=columns, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise told(
            f"no part of a sweep's results ({error}); remove it, and its cases run again",
            str(part),
        ) from None


def _once(parts: list[Path], ids: set[str] | None) -> Iterator[pa.Table]:
    """The tables of parts, each case once."""
    seen: set[str] = set()
    for part in parts:
        table = _read(part)
        here = set(table["id"].to_pylist())
        wanted = (here if ids is None else here & ids) - seen
        seen |= here
        if wanted == here:
            yield table
        elif wanted:
            yield table.filter(pc.is_in(table["id"], pa.array(sorted(wanted))))


def concat(tables: list[pa.Table]) -> pa.Table:
    """One table of all. A key may be a text in one and a number in another: it is a text then."""
    names = {name for table in tables for name in table.column_names}
    mixed = {name for name in names if not _fits(tables, name)}

    def texts(table: pa.Table) -> pa.Table:
        for name in mixed & set(table.column_names):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].cast(pa.string()))
        return table

    return pa.concat_tables([texts(table) for table in tables], promote_options="permissive")


def _fits(tables: list[pa.Table], name: str) -> bool:
    """Whether a column is of kinds that one kind has room for."""
    columns = [table.select([name]) for table in tables if name in table.column_names]
    try:
        pa.concat_tables(columns, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True
