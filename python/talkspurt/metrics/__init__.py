"""Measures that are computed when asked for, from the tables of a run.

The measures of :mod:`talkspurt.measures` stand in the tables of every run. These need more: the
packet table (``record.packets = true``), the time series, or several flows at once. ``packets``
follows packets from end to end, ``losses`` gathers what was lost into events, ``series`` counts
over time, ``opinion`` scores windows of calls, ``sharing`` compares flows; ``catalogue`` names them
all and ``computing`` computes them.
"""

from talkspurt.metrics.catalogue import ALL, Metric
from talkspurt.metrics.computing import compute

__all__ = ["ALL", "Metric", "compute"]
