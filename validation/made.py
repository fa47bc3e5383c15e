"""Versions and date of a validation, shown at the top of every page; and storage of results."""

from __future__ import annotations

import datetime
import gzip
import json
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def uncommitted(*written: Path) -> str:
    """Uncommitted changes of the working tree, except a script's own output."""
    apart = [f":(exclude){path.relative_to(ROOT)}" for path in written]
    command = ["git", "status", "--porcelain", "--", ".", *apart]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return told.stdout.rstrip()


def line(*command: str) -> str:
    """The first line of a command's output."""
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return (told.splitlines() or [""])[0].strip()


def now() -> str:
    """Date and time, for pages."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def made(*written: Path) -> dict:
    """Date, commit and versions common to all validations."""
    return {
        "date": now(),
        "commit": line("git", "rev-parse", "HEAD"),
        "modified": " **and changes that are in no commit** (`--dirty`)"
        if uncommitted(*written)
        else "",
        "host_kernel": platform.release(),
        "tshark": line("tshark", "--version"),
        "rustc": line("rustc", "--version"),
    }


def save(path: Path, results: dict) -> None:
    """Write results, compressed; equal results give equal bytes."""
    text = json.dumps(results, indent=1) + "\n"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def load(path: Path) -> dict:
    """Read the output of `save`."""
    return json.loads(gzip.decompress(path.read_bytes()))


def build(program: str) -> Path:
    """Our side's program."""
    command = ["cargo", "build", "--quiet", "--locked", "--workspace", "--bin", program]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    told = subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True).stdout
    return Path(json.loads(told)["target_directory"]) / "debug" / program
