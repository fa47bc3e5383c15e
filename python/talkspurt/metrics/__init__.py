"""Metrics: a catalogue of all available measures, and their computation.

``catalogue`` lists them all: columns in the tables of every run, and metrics computed on request
because they need the packet table (``record.packets = true``), the time series, or several flows.
``computing`` returns any of them as a table. ``packets`` follows packets end to end and groups
losses into events, ``series`` counts over time, ``opinion`` scores windows of calls, ``sharing``
compares flows, ``breaker`` checks whether RTP would have had to stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt.metrics.catalogue import ALL, Column, Computed, Metric, metric

if TYPE_CHECKING:
    from talkspurt.metrics.computing import compute

__all__ = ["ALL", "Column", "Computed", "Metric", "compute", "metric"]


def __getattr__(name: str) -> object:
    """The catalogue is imported without polars; computing modules are imported on first use."""
    if name != "compute":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from talkspurt.metrics.computing import compute

    return compute
