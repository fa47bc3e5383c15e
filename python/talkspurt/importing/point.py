"""The packets of a capture file, or of an RTC event log."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.importing.conversations import APPLICATION_DATA, CONTROL, Row
from talkspurt.importing.cut import whole_bytes
from talkspurt.importing.sessions import Sessions
from talkspurt.importing.webrtc import eventlog, wire


@dataclass
class Point:
    """The packets of one capture or log.

    Attributes:
        rows: packets of known protocols, in order of time, with their chunks and reports.
        left_out: the frames without a packet, and why.
        untimed: how many of them have no time.
        log: the log, if it is one.
        cut: bytes at the end, of a packet that is incomplete.
    """

    file: Path
    data: bytes
    rows: list[Row]
    left_out: list[tuple[int, str]]
    frames: int
    untimed: int
    sessions: Sessions
    log: eventlog.EventLog | None = None
    cut: int = 0

    @classmethod
    def read(cls, file: Path, data: bytes, sessions: Sessions) -> Point:
        """A capture file."""
        cut = 0
        try:
            try:
                packets, chunks, left_out, frames, untimed = _core.capture(data)
            except ValueError:
                if not (end := whole_bytes(data)) or end == len(data):
                    raise
                packets, chunks, left_out, frames, untimed = _core.capture(data[:end])
                cut = len(data) - end
        except ValueError as error:
            raise BadInputError(visible(f"{file}: {error}")) from None
        rows = pl.DataFrame(packets).sort("time_ns", maintain_order=True).to_dicts()
        by_frame: dict[int, list[Row]] = {}
        for chunk in pl.DataFrame(chunks).iter_rows(named=True):
            by_frame.setdefault(chunk["frame"], []).append(chunk)
        for row in rows:
            row["chunks"] = by_frame.get(row["frame"], [])
        left = list(pl.DataFrame(left_out).iter_rows())
        if not frames:
            raise BadInputError(visible(f"{file}: holds no packets"))
        if not rows:
            found = ", ".join(f"{n} {kind}" for kind, n in Counter(why for _, why in left).items())
            none = "holds no packets of RTP, UDP, TCP, SCTP or DCCP over IP"
            raise BadInputError(visible(f"{file}: {none}: {found}"))
        point = cls(file, data, rows, left, frames, untimed, sessions, cut=cut)
        point.look()
        return point

    @classmethod
    def of_log(cls, file: Path, data: bytes, sessions: Sessions) -> Point:
        """An RTC event log, as a capture at its end has its packets."""
        try:
            log = eventlog.read(data)
        except wire.EventLogError as error:
            raise BadInputError(visible(f"{file}: {error}")) from None
        rows, reports = eventlog.rows(log)
        if not rows:
            raise BadInputError(visible(f"{file}: is an RTC event log without packets of RTP"))
        sessions.add(eventlog.media(log))
        point = cls(file, reports, rows, [], len(rows), 0, sessions, log)
        point.look()
        return point

    def look(self) -> None:
        """What the payloads of control packets say."""
        for row in self.rows:
            row["reports"], row["rtcp"], row["application_data"] = (), b"", False
            row["role"] = CONTROL
            at, end = row["payload_at"], row["payload_end"]
            if at is None or row["rtp_seq"] is not None:
                continue
            cut = end - at < row["payload_bytes"]
            if row["content"] == "rtcp":
                row["rtcp"] = self.data[at:end]
                row["reports"] = json.loads(_core.rtcp(row["rtcp"], not cut))
            elif row["content"] == "dtls":
                row["application_data"] = self.data[at] in APPLICATION_DATA
            elif row["content"] in (None, "other") and b"v=0" in (text := self.data[at:end]):
                self.sessions.add(json.loads(_core.sdp(text, cut) or "[]"), row["time_ns"])
