"""Polars, imported when it is first used: many commands do without, and it takes long."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class Polars:
        """Stands for the module."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("polars"), name)

    pl = Polars()
