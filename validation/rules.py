"""Rules of ours that can be switched off by name: an explanation is an experiment.

``rules.patch`` makes each rule depend on a name in the environment variable ``TALKSPURT_WITHOUT``;
with none its builds are the product. It is applied to a copy of the last commit, so that the
product itself has no such switches.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCH = Path(__file__).with_name("rules.patch")
COPY = ROOT / "target" / "rules"


def build() -> Path:
    """The folder of the patched package, built if the commit or the patch has changed."""
    parts = ["Cargo.toml", "Cargo.lock", "benches", "crates", "python", "speech"]
    head = ["git", "rev-parse", *(f"HEAD:{part}" for part in parts)]
    trees = subprocess.run(head, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    stamp, state = COPY / "state", trees + PATCH.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
        return COPY / "python"
    for part in parts:
        shutil.rmtree(COPY / part, ignore_errors=True)
    COPY.mkdir(parents=True, exist_ok=True)
    archive = ["git", "archive", "HEAD", *parts]
    files = subprocess.run(archive, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x"], cwd=COPY, input=files, check=True)
    # The copy is no part of the repository around it.
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(COPY.parent)}
    subprocess.run(["git", "apply", str(PATCH)], cwd=COPY, env=alone, check=True)
    command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "talkspurt-py"]
    target = {**os.environ, "CARGO_TARGET_DIR": str(COPY / "target"),
              "PYO3_PYTHON": sys.executable}  # fmt: skip
    subprocess.run(command, cwd=COPY, env=target, check=True)
    library = COPY / "target" / "release" / "lib_core.so"
    shutil.copy(library, COPY / "python" / "talkspurt" / "_core.abi3.so")
    stamp.write_text(state, encoding="utf-8")
    return COPY / "python"


def use() -> None:
    """Starts this program again with the patched package in place of the installed one."""
    path = str(build())
    if os.environ.get("PYTHONPATH") != path:
        environment = {**os.environ, "PYTHONPATH": path}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


@contextmanager
def without(*rules: str) -> Iterator[None]:
    """Runs of this process have these rules switched off."""
    os.environ["TALKSPURT_WITHOUT"] = ",".join(rules)
    try:
        yield
    finally:
        del os.environ["TALKSPURT_WITHOUT"]
