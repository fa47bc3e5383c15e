"""Modules that are imported when they are first used.

Many commands do without, and some take long. Polars and numpy also start threads, which must not be
before a process gives its privileges up.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["hashlib", "multiprocessing", "np", "pl", "secrets", "tarfile", "wave"]

if TYPE_CHECKING:
    import hashlib
    import multiprocessing
    import secrets
    import tarfile
    import wave

    import numpy as np
    import polars as pl
else:

    class Module:
        """Stands for a module."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    np, pl = Module("numpy"), Module("polars")
    hashlib, secrets, tarfile = Module("hashlib"), Module("secrets"), Module("tarfile")
    multiprocessing, wave = Module("multiprocessing"), Module("wave")
