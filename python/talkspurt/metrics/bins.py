"""The bins of a run's time series, and the window over which it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt.results.run_data import recorded
from talkspurt.scenarios.resolved import values
from talkspurt.scenarios.units import seconds

if TYPE_CHECKING:
    from talkspurt.results.run_data import RunData


def bin_width(result: RunData) -> float:
    """Width of a bin of the series in seconds."""
    return seconds(recorded(result.scenario)["interval"])


def window(result: RunData) -> tuple[float, float]:
    """Start and end of the measure window in seconds."""
    measure = values(result.scenario).get("measure", {})
    low = seconds(measure["from"]) if "from" in measure else 0.0
    return low, seconds(measure["to"]) if "to" in measure else result.duration_s
