"""The figures of Wheeb 2017: throughput and delay of three kinds of traffic over four protocols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from talkspurt.reproduce.figures import Picture, companion, compared, tabled
from talkspurt.reproduce.wheeb2017 import PROTOCOLS, TRAFFIC

if TYPE_CHECKING:
    from talkspurt.reproduce import Reproduction

TABLES = (
    ("table3", "throughput", "throughput / (kb/s)", 2),
    ("table4", "end-to-end delay", "delay / s", 5),
    ("table5", "packet loss", "loss / %", 8),
)


def pictures(found: Reproduction) -> Iterator[Picture]:
    """All figures: the study's six, and losses, which it has only as a table."""
    for table, words, label, first in TABLES:
        for n, traffic in enumerate(TRAFFIC):
            ids = [f"{table}/{traffic}/{p}".lower() for p in PROTOCOLS]
            title = (
                f"Fig {first + n}: {words}, {traffic}"
                if first < 8
                else f"Table 5: {words}, {traffic}"
            )
            yield Picture(
                f"{table}-{traffic.lower()}",
                f"{words.capitalize()} of {traffic} over the four protocols: printed, ours, ns-2's",
                compared(title, label, PROTOCOLS, tabled(found, ids)),
            )
    calls = {p: (found.run(f"voip-{p.lower()}-companion"), "traffic") for p in PROTOCOLS}
    yield Picture(
        "companion-mos",
        "Mouth-to-ear delay and MOS of a G.711 call over the inferred VoIP path",
        companion("What a caller would say: G.711 over the VoIP path", calls),
    )
