"""What payload types and sources mean: by options, session descriptions (SDP) and RFC 3551."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from talkspurt.importing import rtp

End = tuple[str, int]


@dataclass(frozen=True)
class Payload:
    """The meaning of a payload type.

    Attributes:
        encoding: its name, as in SDP.
        clock_hz: its RTP clock; None if it is not known.
        channels: of its sound.
        fmtp: its parameters, as SDP has them.
    """

    encoding: str
    clock_hz: int | None
    channels: int = 1
    fmtp: str = ""

    @classmethod
    def parse(cls, text: str) -> Payload | None:
        """As in ``opus/48000/2``; the clock of well-known encodings may be left out."""
        name, *numbers = text.split("/")
        if not re.fullmatch(r"[A-Za-z0-9._+-]+", name) or len(numbers) > 2:
            return None
        if not all(number.isdecimal() and 0 < int(number) < 1 << 32 for number in numbers):
            return None
        clock = int(numbers[0]) if numbers else rtp.CLOCKS.get(name.upper())
        channels = int(numbers[1]) if len(numbers) == 2 else 1
        return cls(name, clock, channels) if clock is not None else None

    @property
    def name(self) -> str:
        """Its encoding in capitals: names have no case (RFC 8866 §6)."""
        return self.encoding.upper()


STATIC = {kind: Payload(name, clock) for kind, (name, clock) in rtp.STATIC.items()}


@dataclass
class Sessions:
    """What is known of the sessions in a capture.

    Attributes:
        options: payload types by the command's options.
        media: media descriptions, as ``_core.sdp`` returns them.
        given: those of a file, which need no matching address.
    """

    options: Mapping[int, Payload] = field(default_factory=dict)
    media: list[dict[str, Any]] = field(default_factory=list)
    given: list[dict[str, Any]] = field(default_factory=list)

    def add(self, media: list[dict[str, Any]]) -> None:
        """Add the media of a description that was found, once."""
        self.media += [one for one in media if one not in self.media]

    def _of(self, end: End) -> list[dict[str, Any]]:
        """The media descriptions of who receives at this end."""
        return [
            one
            for one in (*self.media, *self.given)
            if (one["address"], one["port"]) == end
            or any((at["address"], at["port"]) == end for at in one["candidates"])
        ]

    def announces(self, here: End, there: End) -> bool:
        """Whether RTP between these ends was described."""
        return any(one["port"] and "RTP" in one["protocol"] for one in self._of(there)) or any(
            one["port"] and "RTP" in one["protocol"] for one in self._of(here)
        )

    def _described(self, here: End, there: End, ssrc: int) -> list[dict[str, Any]]:
        """Those of a stream: that of its source, the receiver's, the sender's, others."""
        everywhere = [*self.media, *self.given]
        by_source = [one for one in everywhere if ssrc in one["ssrcs"]]
        return [*by_source, *self._of(there), *self._of(here), *self.given, *self.media]

    def payload(self, here: End, there: End, ssrc: int, kind: int) -> Payload | None:
        """What a payload type means in a stream."""
        if kind in self.options:
            return self.options[kind]
        for media in self._described(here, there, ssrc):
            for one in media["payloads"]:
                if one["number"] == kind and (encoding := one.get("encoding")):
                    return Payload(encoding, one["clock_hz"], one["channels"], one["fmtp"] or "")
        return STATIC.get(kind)

    def repaired(
        self, here: End, there: End, ssrc: int, sources: Collection[tuple[End, int]]
    ) -> tuple[End, int] | None:
        """The stream that a source only repairs, by what descriptions say of it."""
        for media in self._described(here, there, ssrc):
            for group in media["groups"]:
                if ssrc in group["ssrcs"][1:] and group["semantics"] in ("FID", "FEC-FR", "FEC"):
                    base = (here, group["ssrcs"][0])
                    return base if base in sources else None
        return None
