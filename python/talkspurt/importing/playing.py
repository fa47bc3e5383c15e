"""Plays the speech of a trace through a jitter buffer of scenarios, and scores what is heard."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cached_property
from itertools import pairwise
from typing import Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt.importing.model import Way
from talkspurt.results.audio import Audio

LOOK_AHEAD_S = {"g729a": 0.005, "g723.1-6.3": 0.0075, "g723.1-5.3": 0.0075}
"""Look-ahead of the encoders (G.729, G.723.1)."""
GRID_S, LONGEST_S = 0.0025, 0.12
"""Packets are whole multiples of the first, and no longer than the second: Opus (RFC 6716 §2)."""
RARE = 0.01
"""Lengths that fewer of the packets have are those of pauses or of wrong timestamps."""
PLAYED = (
    "late_packets", "recovered_packets", "missing_packets", "loss_ratio", "concealed_ratio",
    "unheard_lost_ratio", "unheard_late_ratio", "unheard_paused_ratio", "paused_s", "burst_ratio",
    "longest_gap_s", "fec_ratio", "dred_ratio", "dred_depth_mean_s", "r_factor", "mos", "r_bound",
    "mos_bound", "mos_lost_to_delay", "mos_lost_to_loss", "mos_lost_to_codec", "estimated_mos",
    "estimated_mos_bound", "quality_limits", "estimate_limits",
)  # fmt: skip
"""Columns of the flows table that are those of a run."""
HIDDEN = ("recovered_packets", "fec_ratio", "dred_ratio", "dred_depth_mean_s")
"""Those of redundancy within the payload."""
EARS = ("mouth_to_ear_p50_s", "mouth_to_ear_mean_s", "mouth_to_ear_max_s")
UNKNOWN_DELAY = (
    "network delay before the capture taken as 0, because it is not known: an upper limit"
)


class Call:
    """Speech of one direction, through the playout of its flow."""

    def __init__(self, way: Way, told: dict[str, Any], end_s: float, data: bytes) -> None:
        assert way.speech is not None
        self.way, self.speech, self.data = way, way.speech, data
        self.media = [p for p in way.packets if p.data and p.media_s is not None]
        # The packet that was fastest left when its last sample had been captured.
        ahead = self.speech.packet_s + LOOK_AHEAD_S.get(self.speech.codec, 0.0)
        self.zero_s = self.speech.first_s - (self.speech.delay_s or 0.0) - ahead
        # Times of the engine are not negative.
        self.shift_s = float(max(0, math.ceil(-self.zero_s)))
        self.end_ns = round((end_s + self.shift_s) * 1e9)
        # What has arrived is played, whatever brought it: the CCID of a DCCP connection is unknown.
        source = told["reverse"] if way.side == "to" else told["source"]
        # The other direction may be no speech, which is no word of a scenario.
        rest = {key: value for key, value in told.items() if key != "reverse"}
        self.told = {**rest, "source": source, "transport": {"kind": "udp"}}
        outcome = self._listen(sounds=False)
        self.frames = self._back(outcome, "frames")
        self.gauges = self._back(outcome, "gauges")
        (row,) = outcome.rows("flows")
        self.columns = {name: row[name] for name in PLAYED}
        if not self.speech.is_readable:
            self.columns |= dict.fromkeys(HIDDEN)
        if self.speech.delay_s is not None:
            self.columns |= {name: row[name] for name in EARS}
        unknown = UNKNOWN_DELAY if self.speech.delay_s is None else None
        notes = [row["quality_note"], unknown, *self.speech.notes]
        self.columns["quality_note"] = "; ".join(filter(None, notes))

    @cached_property
    def lengths_s(self) -> list[float]:
        """The lengths of packets, the most frequent first."""
        found = Counter(
            round((after.media_s - before.media_s) / GRID_S) * GRID_S
            for before, after in pairwise(self.media)
            if before.media_s is not None and after.media_s is not None
        )
        least = RARE * len(self.media)
        own = self.speech.packet_s
        others = [
            length
            for length, count in found.most_common()
            if 0 < length <= LONGEST_S and count >= least and abs(length - own) > GRID_S / 2
        ]
        return [own, *others[:7]]

    def _length(self, place: int) -> int | None:
        packet, after = self.media[place], self.media[min(place + 1, len(self.media) - 1)]
        if packet.noise:
            return None
        assert packet.media_s is not None and after.media_s is not None
        step = after.media_s - packet.media_s
        near = (i for i, one in enumerate(self.lengths_s) if abs(one - step) < GRID_S / 2)
        return next(near, 0)

    def _listen(self, *, sounds: bool) -> _core.Outcome:
        def ns(seconds: float | None) -> int | None:
            return None if seconds is None else round((seconds + self.shift_s) * 1e9)

        speed = 1 + self.speech.drift_ppm * 1e-6
        first = min((p.media_s or 0.0 for p in self.media), default=0.0)
        rows = [
            (round(((p.media_s or 0.0) - first) * 1e9),
             max(0, ns(self.zero_s + (p.media_s or 0.0) * speed) or 0),
             ns(p.sent_s), ns(p.repaired_s if p.received_s is None else p.received_s),
             self._length(place), p.marker,
             p.payload_bytes or 0, p.payload)
            for place, p in enumerate(self.media)
        ]  # fmt: skip
        lengths = [round(length * 1e9) for length in self.lengths_s]
        told = json.dumps(self.told)
        return _core.listen(told, lengths, rows, self.end_ns, self.data, sounds)

    def _back(self, outcome: _core.Outcome, table: str) -> list[dict[str, Any]]:
        """The rows of a table by the times of the trace."""
        rows = pl.DataFrame(outcome.table(table))
        times = [name for name in rows.columns if name.endswith("_s") and name != "paused_s"]
        rows = rows.with_columns(pl.col(times) - self.shift_s, flow=pl.lit(self.way.name))
        if table == "gauges":
            # Those of the end that listens, as in a run.
            listens = "to" if self.way.side == "from" else "from"
            rows = rows.with_columns(side=pl.lit(listens))
        elif not self.way.sees_sent:
            rows = rows.with_columns(handed_over_s=pl.lit(None, pl.Float64))
        return rows.to_dicts()

    @property
    def late_s(self) -> list[float]:
        """Arrivals of late frames."""
        return [row["delivered_s"] for row in self.frames if row["fate"] == "late"]

    def audio(self) -> Audio | None:
        """What was captured, and what was heard of it; None if the payload is not there."""
        found = self._listen(sounds=True).audio("call")
        if found is None:
            return None
        sent, received, rate, channels, start_s = found
        return Audio(self.way.name, sent, received, rate, channels, start_s - self.shift_s)
