"""The bins of a run's time series, the window of measurement, and the directions of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt.scenarios.units import seconds

if TYPE_CHECKING:
    from talkspurt.results.run_data import RunData


def bin_width(result: RunData) -> float:
    """Width of a bin of the series in seconds."""
    return seconds(result.recorded["interval"])


def sided(direction: str) -> tuple[str, str]:
    """The flow of a direction, and the side that sends in it."""
    flow = direction.removesuffix(".reverse")
    return flow, "from" if flow == direction else "to"


def window(result: RunData) -> tuple[float, float]:
    """Start and end of the measure window in seconds."""
    measure = result.resolved.get("measure", {})
    low = seconds(measure["from"]) if "from" in measure else 0.0
    return low, seconds(measure["to"]) if "to" in measure else result.duration_s
