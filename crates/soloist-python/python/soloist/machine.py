# SPDX-License-Identifier: MIT OR Apache-2.0
"""Machines, and where in DRAM physical addresses lie."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._source import path, texts, told

#: The fields of a place in DRAM, as `Machine.decode` gives them.
FIELDS = ("node", "channel", "rank", "bank", "row", "column", "color")

#: Addresses between two looks for Ctrl-C: some hundredths of a second.
_PART = 1 << 22

#: What each field holds where an address lies in a hole.
NO_PLACE = 0xFFFF_FFFF


class Machine:
    """A machine, as its file describes it; `load` makes one."""

    def __init__(self, native: _native.Machine) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def description(self) -> str:
        """One line for people."""
        return self._native.description

    @property
    def file(self) -> str:
        """The file that it was read from."""
        return self._native.file

    @property
    def trust(self) -> str:
        """How far its map can be trusted: "measured", "published" ..."""
        return self._native.trust

    @property
    def modelled(self) -> bool:
        """The lab can run tasks on it: its file has ``[memory]`` and ``[cache]``."""
        return self._native.modelled

    @property
    def cpus(self) -> int:
        """Number of processors."""
        return self._native.cpus

    @property
    def bytes(self) -> int:
        """Bytes of memory in all ranges."""
        return self._native.bytes

    @property
    def line(self) -> int:
        """Bytes of a cache line."""
        return self._native.line

    @property
    def nodes(self) -> int:
        """Memory nodes: the highest number + 1."""
        return self._native.nodes

    @property
    def channels(self) -> int:
        """Channels of a node."""
        return self._native.channels

    @property
    def ranks(self) -> int:
        """Ranks of a channel."""
        return self._native.ranks

    @property
    def banks(self) -> int:
        """Banks of a rank."""
        return self._native.banks

    @property
    def bank_sets(self) -> int:
        """Bank sets of the machine: sets of banks that pages can be given."""
        return self._native.bank_sets

    @property
    def llc_colors(self) -> int:
        """Colours of the last-level cache, at least 1."""
        return self._native.llc_colors

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """First address, first address behind, and node of each range of memory, bytes."""
        return self._native.ranges

    def decode(
        self,
        addresses: ArrayLike,
        fields: Sequence[str] = FIELDS,
        holes: Literal["raise", "mark"] = "raise",
        out: Mapping[str, NDArray[np.uint32]] | None = None,
    ) -> dict[str, NDArray[np.uint32]]:
        """The places in DRAM of physical addresses.

        Parameters
        ----------
        addresses
            Physical addresses, bytes, of any shape. An array of uint64 without gaps is not
            copied. Other threads of Python run meanwhile.
        fields
            The `FIELDS` that are wanted; fewer take less time.
        holes
            Addresses in no range of the map are an error, or (``"mark"``) have `NO_PLACE`
            in every field.
        out
            Arrays of uint32 without gaps, by field, to write into: `fields` are theirs then.
            Without them most of the time goes into memory that is touched first.

        Returns
        -------
        An array of uint32 for each field, of the shape of `addresses`. ``color`` is the bank
        colour: node, channel, rank and bank in one number. ``column`` counts units of the
        DRAM device, and ``rank`` counts from 0 where a machine's own numbers (its chip
        selects, which ``soloist map decode`` prints) may begin later.
        """
        if out is not None and not isinstance(out, Mapping):
            raise told("out: expected a dictionary of arrays by field")
        fields = texts("fields", fields) if out is None else list(out)
        unknown = [name for name in fields if name not in FIELDS]
        if unknown or not fields:
            named = f"no field {unknown[0]!r}" if unknown else "no field is asked for"
            raise told(f"{named}; there are: {', '.join(FIELDS)}")
        if holes not in ("raise", "mark"):
            raise told(f"holes={holes!r}: expected 'raise' or 'mark'")
        given = _whole(addresses, np.uint64, "addresses")
        if out is None:
            out = {name: np.empty(given.shape, np.uint32) for name in fields}
        _check_out(out, given)
        flat = given.reshape(-1)
        pairs = [(FIELDS.index(name), array.reshape(-1)) for name, array in out.items()]
        lost = 0
        for part in _parts(flat.size):
            lost += self._native.decode(flat[part], [(field, to[part]) for field, to in pairs])
        if lost and holes == "raise":
            nowhere = np.all([array == NO_PLACE for array in out.values()], axis=0)
            at = int(np.argmax(nowhere))
            parts = ", ".join(f"{start:#x}-{end:#x}" for start, end, _ in self.ranges)
            raise told(
                f"addresses[{at}] = {int(given.flat[at]):#x} lies in no range of {self.name} "
                f"({parts}), and so do {lost - 1} others; holes='mark' marks them"
            )
        return dict(out)

    def encode(
        self, places: Mapping[str, ArrayLike], out: NDArray[np.uint64] | None = None
    ) -> NDArray[np.uint64]:
        """The physical addresses of places in DRAM, bytes: the inverse of `decode`.

        ``node``, ``channel``, ``rank``, ``bank``, ``row`` and ``column`` are arrays of one
        shape, or numbers; those that are left out are 0. ``color`` is not read. The bits
        below a column come out as 0. An array of uint64 of that shape is returned: `out`, or
        a new one, whose memory that is touched first takes much of the time.
        """
        if not isinstance(places, Mapping):
            raise told("places: expected a dictionary of arrays, as decode gives it")
        unknown = [name for name in places if name not in FIELDS]
        if unknown:
            raise told(f"no field {unknown[0]!r}; there are: {', '.join(FIELDS)}")
        names = FIELDS[:6]
        given = [_whole(places.get(name, 0), np.uint32, name) for name in names]
        try:
            even = np.broadcast_arrays(*given)
        except ValueError:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names, given, strict=True))
            raise told(f"the fields are not of one shape: {shapes}") from None
        arrays = [np.ascontiguousarray(array).reshape(-1) for array in even]
        if out is None:
            out = np.empty(even[0].shape, np.uint64)
        _check_one("out", out, np.uint64, even[0].shape, list(zip(names, arrays, strict=True)))
        flat = out.reshape(-1)
        for part in _parts(flat.size):
            wrong = self._native.encode([array[part] for array in arrays], flat[part])
            if wrong is None:
                continue
            at, why = part.start + wrong[0], wrong[1]
            place = ", ".join(f"{n} {a[at]}" for n, a in zip(names, arrays, strict=True))
            raise told(f"places[{at}] ({place}) on {self.name}: {why}")
        return out

    def __repr__(self) -> str:
        return f"<soloist machine {self.name}: {self.description}>"


def _parts(size: int) -> Iterator[slice]:
    """An array in parts: between two of them Ctrl-C is heard."""
    return (slice(at, at + _PART) for at in range(0, size, _PART))


def _whole(values: ArrayLike, kind: type[np.unsignedinteger], what: str) -> np.ndarray:
    """An array without gaps of whole numbers that `kind` holds; a copy where it is none."""
    if isinstance(values, np.ma.MaskedArray):
        raise told(f"{what}: a masked array; give .compressed() or .filled()")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise told(f"{what}: no array: {error}") from None
    if array.dtype != kind:
        if array.size == 0:
            array = array.astype(kind)
        elif array.dtype.kind not in "iu":
            raise told(f"{what}: expected whole numbers, not {array.dtype}")
        elif int(array.min()) < 0 or int(array.max()) > np.iinfo(kind).max:
            raise told(f"{what}: expected numbers from 0 to {np.iinfo(kind).max}")
    return np.require(array, kind, ["C", "A"])


def _check_out(out: Mapping[str, Any], given: np.ndarray) -> None:
    others = [("the addresses", given)]
    for name, array in out.items():
        _check_one(f"out[{name!r}]", array, np.uint32, given.shape, others)
        others.append((f"out[{name!r}]", array))


def _check_one(
    what: str,
    array: Any,
    kind: type[np.unsignedinteger],
    shape: tuple[int, ...],
    others: list[tuple[str, np.ndarray]],
) -> None:
    """An array to write into, which shares no memory with what is read or written beside it."""
    fits = isinstance(array, np.ndarray) and array.dtype == kind and array.shape == shape
    if not fits or not array.flags.c_contiguous or not array.flags.writeable:
        raise told(f"{what}: expected a writable array of {kind.__name__} without gaps, "
                   f"of shape {shape}")  # fmt: skip
    for other, memory in others:
        if np.may_share_memory(array, memory):
            raise told(f"{what} shares memory with {other}: give an array of its own")


def load(name: str | os.PathLike[str]) -> Machine:
    """A machine by name (`names`), or by the path of its file."""
    return Machine(_native.Machine.load(path("machine", name)))


def parse(text: str, file: str = "machine.toml") -> Machine:
    """A machine from the text of a file; `file` is its name in messages."""
    if not isinstance(text, str):
        raise told(f"text={text!r}: expected the text of a machine file")
    return Machine(_native.Machine.parse(text, path("file", file)))


def names() -> list[str]:
    """Names of the machines that are built in."""
    return _native.machine_names()
