"""Metrics: one catalogue of all that can be measured, and how it is computed.

``catalogue`` names them all: columns that stand in the tables of every run, and what is computed
when asked for because it needs the packet table (``record.packets = true``), the time series, or
several flows at once. ``computing`` gives any of them as a table. ``packets`` follows packets from
end to end, ``losses`` gathers what was lost into events, ``series`` counts over time, ``opinion``
scores windows of calls, ``sharing`` compares flows, ``breaker`` asks whether RTP would have had to
stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt.metrics.catalogue import ALL, Column, Computed, Metric, metric

if TYPE_CHECKING:
    from talkspurt.metrics.computing import compute

__all__ = ["ALL", "Column", "Computed", "Metric", "compute", "metric"]


def __getattr__(name: str) -> object:
    """The catalogue is read without polars; what computes with it is opened when asked for."""
    if name != "compute":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from talkspurt.metrics.computing import compute

    return compute
