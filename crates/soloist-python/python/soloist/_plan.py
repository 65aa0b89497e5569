# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plans of tasks with deadlines."""

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _native
from ._source import Source, path, read, toml, whole


def plan(
    tasks: Source, machine: str | os.PathLike[str] | None = None, *, seed: int = 1
) -> dict[str, Any]:
    """Cores, colours and bandwidth under which every deadline is proved to hold.

    Parameters
    ----------
    tasks
        A task file (docs/reference/task-files.md), or the same as a dictionary.
    machine
        A name or the path of a machine file; None: the one that the tasks name.
    seed
        Draws the programs that stand for tasks, and their pages.

    Returns
    -------
    What ``soloist-lab plan --json`` prints: ``holds``, ``assignments`` (a task's core, node,
    bank sets, limit), ``analysis`` (response times), ``relaxations`` (what would be enough
    where it does not hold), ``simulation`` and ``config``.
    """
    made = isinstance(tasks, Mapping)
    if isinstance(tasks, Mapping):
        text, file = toml(tasks), "tasks"
    else:
        file = path("tasks", tasks)
        text = read(file)
    name = None if machine is None else path("machine", machine)
    number = whole("seed", seed, 0, 1 << 64)
    found: dict[str, Any] = json.loads(_native.plan(text, file, made, name, number))
    return found
