"""The examples in README and the documentation pass a strict type checker."""

import re
import sys
from pathlib import Path

import pytest

from command import process

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/how-to/read-results.md"]


@pytest.mark.parametrize("page", PAGES)
def test_examples_pass_mypy_strict(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    every = re.findall(r"```python\n(.*?)```", text, re.S)
    # Their types are not installed here.
    examples = [one for one in every if not re.search("import (pandas|duckdb)", one)]
    assert examples
    file = tmp_path / "example.py"
    # A page continues its examples.
    file.write_text("\n".join(examples), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir"]
    done = process(*command, tmp_path / "cache", file, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
