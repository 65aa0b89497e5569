# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tasks on modelled machines: which board, which placement, how many banks.

The figures are those of ``soloist-lab``: the same Rust computes them.

==================  ==========================================================
``machine``         machines: ``machine.load(name)``, decode and encode addresses
``lab``             scenarios: ``lab.run(scenario)`` gives an Arrow table
``sim``             requests in arrays on memory controllers: ``sim.trace``
``record``          recorded programs as Arrow batches: ``record.read(dir)``
``plan``            cores, colours and bandwidth for tasks with deadlines
``sweep``           thousands of scenarios on all cores, or on a cluster
``random`` ...      points of a sweep by chance: ``latin_hypercube``, ``between``
``plot``, ``chart`` pictures with matplotlib, and with Vega-Altair
==================  ==========================================================

What is wrong with an input is a `SoloistError` with ``file``, ``line`` and ``message``.
"""

import importlib
from typing import Any

from . import lab, machine, record, sim
from ._native import MODEL, VERSION, SoloistError
from ._plan import plan
from .sampling import Between, between, latin_hypercube, random

__version__: str = VERSION

__all__ = [
    "MODEL",
    "Between",
    "SoloistError",
    "between",
    "chart",
    "frame",
    "lab",
    "latin_hypercube",
    "machine",
    "plan",
    "plot",
    "random",
    "record",
    "sim",
    "sweep",
    "version",
]

# Modules that need Dask, matplotlib or Altair are imported when they are asked for.
_LAZY = {
    "sweep": ("._sweep", "sweep"),
    "Sweep": ("._sweep", "Sweep"),
    "frame": (".store", "frame"),
    "plot": (".plot", None),
    "chart": (".chart", None),
}


def version() -> str:
    """The version of the package and of its model: results of one are not another's."""
    return f"{VERSION}-{MODEL}"


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'soloist' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = importlib.import_module(module, __name__)
    value = found if attribute is None else getattr(found, attribute)
    globals()[name] = value
    return value
