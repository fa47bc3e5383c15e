"""Measures that are computed when asked for, from the tables of a run.

The measures of :mod:`talkspurt.measures` stand in the tables of every run. These need more: the
packet table (``record.packets = true``), the time series, or several flows at once. ``packets``
follows packets from end to end, ``sharing`` compares flows, ``catalogue`` names them all.
"""

from talkspurt.metrics.catalogue import ALL, Metric, compute

__all__ = ["ALL", "Metric", "compute"]
