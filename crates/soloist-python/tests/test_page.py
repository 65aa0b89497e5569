# SPDX-License-Identifier: MIT OR Apache-2.0
"""What docs/how-to/python.md types ends in a plot."""

import os
import subprocess
import sys

from conftest import TOP


def test_the_page_ends_in_a_plot(tmp_path):
    page = (TOP / "docs/how-to/python.md").read_text()
    (tmp_path / "first.py").write_text(page.split("```python\n")[1].split("```")[0])
    subprocess.run([sys.executable, "first.py"], cwd=tmp_path, check=True,
                   env=os.environ | {"MPLBACKEND": "agg"})  # fmt: skip
    assert (tmp_path / "slowdown.png").read_bytes().startswith(b"\x89PNG")
