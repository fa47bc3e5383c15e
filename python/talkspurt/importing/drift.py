"""How much faster the clock of a capture is than that of a sender's timestamps."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_S = 30.0
"""In less, a drift of a clock cannot be told from a change of the delay."""
CLOCK_PPM = 500.0
"""Clocks differ by less; more is a change of the delay, or a wrong rate."""
WRONG = 0.02
"""A rate of timestamps that is wrong by as much is not that of the encoding."""


@dataclass(frozen=True)
class Drift:
    """The slope of the least transit times.

    Attributes:
        ppm: by how much the capture's clock is faster.
        bound_ppm: how far it may be wrong, by the spread of the transit times.
    """

    ppm: float
    bound_ppm: float

    @property
    def is_clock(self) -> bool:
        """Whether it is that of two clocks."""
        return abs(self.ppm) <= CLOCK_PPM

    def facts(self) -> dict[str, float]:
        """For the manifest."""
        return {"clock_drift_ppm": self.ppm, "clock_drift_bound_ppm": self.bound_ppm}

    def note(self, flow: str, clock_hz: int) -> str | None:
        """What the user must know of it."""
        if abs(self.ppm) < WRONG * 1e6:
            return None
        rate = clock_hz / (1 + self.ppm * 1e-6)
        return (
            f"the timestamps of {flow} advance by {rate:.0f} a second, and not by {clock_hz}: is "
            "the encoding the right one (--payload)?"
        )

    def assumed(self) -> str:
        """What a score assumes of it."""
        return (
            f"the sender's clock is {abs(self.ppm):.0f} ± {self.bound_ppm:.0f} ppm "
            f"{'slower' if self.ppm > 0 else 'faster'} than the capture's"
        )


def found(times: list[tuple[float, float]]) -> Drift | None:
    """The drift by media times and arrivals, in seconds; None for a short stream.

    The line below all transit times that is closest to them on average (Moon, Skelly, Towsley 1999)
    is the edge of their lower convex hull above the mean of the media times.
    """
    points = sorted((media, arrival - media) for media, arrival in times)
    if len(points) < 3 or points[-1][0] - points[0][0] < LEAST_S:
        return None
    hull: list[tuple[float, float]] = []
    for point in points:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    middle = sum(x for x, _ in points) / len(points)
    right = next((at for at, (x, _) in enumerate(hull) if x >= middle), len(hull) - 1)
    (x0, y0), (x1, y1) = hull[max(0, right - 1)], hull[max(1, right)]
    if x1 <= x0:
        return None
    slope = (y1 - y0) / (x1 - x0)
    above = sorted(y - y0 - slope * (x - x0) for x, y in points)
    spread = above[len(above) // 10]
    return Drift(slope * 1e6, 2e6 * spread / (points[-1][0] - points[0][0]))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
