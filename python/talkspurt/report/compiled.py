"""Compiled templates on disk, beside Python's own compiled modules.

To compile the templates takes as long as to simulate half a minute of a busy link.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

FOLDER = Path(__file__).parent / "__pycache__"


class Compiled(FileSystemBytecodeCache):
    """Templates that are compiled again if their file is damaged or cannot be written."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template; none if there is no such file, or a damaged one."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, UnpicklingError, ValueError, AttributeError, ImportError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a template, if there is space for it."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def cache() -> Compiled | None:
    """The templates compiled before; None where Python writes no compiled modules either."""
    there = FOLDER.is_dir() and os.access(FOLDER, os.W_OK)
    return Compiled(str(FOLDER)) if there and not sys.dont_write_bytecode else None
