"""What payload types and sources mean: by options, session descriptions (SDP) and RFC 3551."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from talkspurt.importing import rtp

End = tuple[str, int]


@dataclass(frozen=True)
class Payload:
    """The meaning of a payload type: its encoding, as SDP names it, and its clock."""

    encoding: str
    clock_hz: int

    @classmethod
    def parse(cls, text: str) -> Payload | None:
        """As in ``opus/48000/2``; the clock of well-known encodings may be left out."""
        name, *numbers = text.split("/")
        if not re.fullmatch(r"[A-Za-z0-9._+-]+", name) or len(numbers) > 2:
            return None
        if not all(number.isdecimal() and 0 < int(number) < 1 << 32 for number in numbers):
            return None
        clock = int(numbers[0]) if numbers else rtp.CLOCKS.get(name.upper())
        return cls(name, clock) if clock is not None else None

    @property
    def name(self) -> str:
        """Its encoding in capitals: names have no case (RFC 8866 §6)."""
        return self.encoding.upper()


STATIC = {kind: Payload(name, clock) for kind, name, clock in rtp.STATIC}


class Sessions:
    """What is known of the sessions in a capture.

    Media descriptions are as ``_core.sdp`` returns them.

    Args:
        options: payload types by the command's options.
        given: descriptions of a file, which need no matching address.
    """

    def __init__(
        self,
        options: Mapping[int, Payload] | None = None,
        given: Iterable[dict[str, Any]] = (),
    ) -> None:
        self.options = options or {}
        self.given = [*given]
        self._at: dict[End, list[tuple[int, dict[str, Any]]]] = {}
        self._of_ssrc: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        self._meanings: dict[int, set[Payload]] = {}
        self.add(self.given)

    def add(self, media: Iterable[dict[str, Any]], time_ns: int = 0) -> None:
        """Add the media of a description that was found, at times that do not decrease."""
        for one in media:
            ends = [(one["address"], one["port"])]
            ends += [(at["address"], at["port"]) for at in one["candidates"]]
            for end in ends:
                known = self._at.setdefault(end, [])
                if not known or known[-1][1] != one:
                    known.append((time_ns, one))
            for ssrc in {*one["ssrcs"], *(ssrc for it in one["groups"] for ssrc in it["ssrcs"])}:
                self._of_ssrc.setdefault(ssrc, []).append((time_ns, one))
            for kind, meaning in _payloads(one):
                self._meanings.setdefault(kind, set()).add(meaning)

    def announces(self, here: End, there: End) -> bool:
        """Whether RTP between these ends was described."""
        described = (*self._at.get(there, ()), *self._at.get(here, ()))
        return any(one["port"] and "RTP" in one["protocol"] for _, one in described)

    def encrypts(self, here: End, there: End, ssrc: int, at_ns: int) -> bool:
        """Whether a stream was described as SRTP (RFC 5764 §8)."""
        found = (one["protocol"] for one in self._described(here, there, ssrc, at_ns))
        return "SAVP" in next((protocol for protocol in found if "RTP" in protocol), "")

    def _described(self, here: End, there: End, ssrc: int, at_ns: int) -> Iterator[dict[str, Any]]:
        """Those of a stream: that of its source, the receiver's, the sender's, the given ones.

        Of several, the last before this time, those before it, and then those that follow.
        """
        for found in (self._of_ssrc.get(ssrc, ()), self._at.get(there, ()), self._at.get(here, ())):
            yield from (one for time, one in reversed(found) if time <= at_ns)
            yield from (one for time, one in found if time > at_ns)
        yield from self.given

    def payload(self, here: End, there: End, ssrc: int, kind: int, at_ns: int) -> Payload | None:
        """What a payload type means in a stream at a time."""
        if kind in self.options:
            return self.options[kind]
        for media in self._described(here, there, ssrc, at_ns):
            for number, meaning in _payloads(media):
                if number == kind:
                    return meaning
        # Addresses may be translated: other descriptions count if they agree.
        meanings = self._meanings.get(kind, set())
        return next(iter(meanings)) if len(meanings) == 1 else STATIC.get(kind)

    def repaired(
        self, here: End, there: End, ssrc: int, sources: Mapping[tuple[End, int], list[Any]]
    ) -> tuple[End, int] | None:
        """The stream that a source only repairs, by what descriptions say of it."""
        for media in self._described(here, there, ssrc, sources[here, ssrc][0]["time_ns"]):
            for group in media["groups"]:
                if ssrc in group["ssrcs"][1:] and group["semantics"] in ("FID", "FEC-FR", "FEC"):
                    base = (here, group["ssrcs"][0])
                    return base if base in sources else None
        return None


def _payloads(media: dict[str, Any]) -> Iterator[tuple[int, Payload]]:
    for one in media["payloads"]:
        if encoding := one.get("encoding"):
            yield one["number"], Payload(encoding, one["clock_hz"])
