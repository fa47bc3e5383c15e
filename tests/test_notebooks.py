"""The notebooks run, and what they show is what they give."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from command import process

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


def shown(file):
    """The text of every output, by cell."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return [
        ["".join(output.get("data", output).get("text/plain", "")) for output in cell["outputs"]]
        for cell in cells
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_gives_what_it_shows(notebook, tmp_path):
    copy = tmp_path / notebook.name
    shutil.copyfile(notebook, copy)
    execute = Path(sys.executable).with_name("jupyter-execute")
    done = process(execute, "--inplace", copy, timeout=300)
    assert done.returncode == 0, done.stderr
    assert shown(copy) == shown(notebook)
    assert any(shown(notebook))
