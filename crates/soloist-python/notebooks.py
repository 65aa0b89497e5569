# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs notebooks: each cell must end without an error.

What they show goes to build/notebooks: the notebook, and each picture as a file of its own.
"""

import base64
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

TOP = Path(__file__).resolve().parents[2]
SHOWN = TOP / "build/notebooks"


def run(path: Path) -> bool:
    """Runs one; whether it ended well."""
    began = time.monotonic()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=1200, kernel_name="python3",
                            resources={"metadata": {"path": str(SHOWN)}})  # fmt: skip
    try:
        client.execute()
    except CellExecutionError as error:
        print(f"FAIL {path.name}: {error}", file=sys.stderr)
        return False
    nbformat.write(notebook, SHOWN / path.name)
    pictures = keep_pictures(notebook, path.stem)
    print(f"ok {path.name} ({time.monotonic() - began:.0f} s, {pictures} pictures)")
    return pictures > 0


def keep_pictures(notebook: nbformat.NotebookNode, stem: str) -> int:
    """Writes the pictures of a notebook as PNG; how many there are."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    found = [out.data["image/png"] for out in outputs if "image/png" in out.get("data", {})]
    for n, picture in enumerate(found):
        (SHOWN / f"{stem}-{n}.png").write_bytes(base64.b64decode(picture))
    return len(found)


def main() -> int:
    """All that are named."""
    os.environ["PATH"] = f"{TOP}/target/debug:{os.environ['PATH']}"
    # All 1,000 designs take some minutes: FULL=1.
    if not os.environ.get("FULL"):
        os.environ.setdefault("DESIGNS", "100")
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    SHOWN.mkdir(parents=True, exist_ok=True)
    results = [run(Path(name)) for name in sys.argv[1:]]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
