"""Formatting of rates, times and call verdicts for display."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A verdict for a range of R, and of MOS."""

    from_r: float
    from_mos: float
    words: str
    short: str
    grade: int
    """0 is best, 5 worst; selects the colour."""


# ITU-T G.107 Annex B, Table B.1, and its note on R below 50.
VERDICTS: tuple[Verdict, ...] = (
    Verdict(90, 4.34, "users very satisfied", "very satisfied", 0),
    Verdict(80, 4.03, "users satisfied", "satisfied", 1),
    Verdict(70, 3.6, "some users dissatisfied", "some dissatisfied", 2),
    Verdict(60, 3.1, "many users dissatisfied", "many dissatisfied", 3),
    Verdict(50, 2.58, "nearly all users dissatisfied", "nearly all dissatisfied", 4),
    Verdict(-math.inf, 1.0, "not recommended", "not recommended", 5),
)


def verdict(r_factor: float | None) -> Verdict | None:
    """User satisfaction for a call rated R (ITU-T G.107 Annex B, Table B.1)."""
    if r_factor is None:
        return None
    return next(v for v in VERDICTS if r_factor >= v.from_r)


MAX_LISTED = 20


def listed(names: Iterable[str]) -> str:
    """Names that an error offers: all of a few, else the first ones and how many more there are."""
    every = list(names)
    more = len(every) - MAX_LISTED
    return ", ".join([*every[:MAX_LISTED], *([f"and {more} more"] if more > 0 else [])])


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that begin with another or are spelled most like it, in any case."""
    import difflib

    asked, by_words = words(name), {words(one): one for one in reversed(list(known))}
    longer = [one for one in by_words if len(asked) > 2 and one.startswith(asked)]
    near = [*sorted(longer, key=len), *difflib.get_close_matches(asked, by_words, most)]
    return [by_words[one] for one in dict.fromkeys(near)][:most]


def words(name: str) -> str:
    """A name as lower-case words: ``Delay, p50`` and ``delay_p50`` are one."""
    return " ".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def same(name: str, known: Iterable[str]) -> str:
    """The known name that this one is but for capitals and punctuation; itself without one."""
    every = list(known)
    if name in every:
        return name
    return next((one for one in every if words(one) == words(name)), name)


def offered(name: str, known: Iterable[str]) -> str:
    """What an error about an unknown name adds: the known names, and the one meant perhaps."""
    every = list(known)
    near = nearest(name, every)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there are: {listed(every) or 'none'}{hint}"


def rate_text(bits_per_second: float | None) -> str:
    """A rate in a suitable unit."""
    units = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
    return _scaled(bits_per_second, units, zero="0 bit/s")


def time_text(seconds: float | None) -> str:
    """A time in a suitable unit."""
    return _scaled(seconds, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)), zero="0 ms")


def _scaled(value: float | None, units: tuple[tuple[str, float], ...], zero: str) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return zero
    # 999.95 ms must not become "1e+03 ms": choose the unit by the rounded value.
    name, size = next(((n, s) for n, s in units if abs(value) >= s * 0.9995), units[-1])
    shown = value / size
    text = f"{shown:.3g} {name}" if abs(shown) < 999.5 else f"{shown:.0f} {name}"
    return text.replace("-", "−")
