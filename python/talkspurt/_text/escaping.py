"""Makes untrusted text safe to display: terminal and browser control characters are escaped.

Titles, names and paths may contain escape sequences, bidi controls, line ends and invisible
characters. All output to a terminal or a page passes through this module.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""Invisible characters, line ends and bidi controls (Unicode: Cf, Zl, Zp,
Default_Ignorable_Code_Point), besides control characters and lone surrogates."""

_CONTROL = "\x00-\x1f\x7f-\x9f\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROL}{HIDDEN}]|[\U00010000-\U0010ffff]")
# Without line ends and tabs. One set of characters: alternatives and a look-ahead take three times
# as long on a large page.
_IN_LINES = f"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{HIDDEN}\U00010000-\U0010ffff"
_UNSAFE_IN_LINES = re.compile(f"[{_IN_LINES}]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every non-printing character escaped, as in ``\u202e``.

    With ``lines``, line breaks and tabs are permitted.
    """
    return (
        text
        if _is_plain(text)
        else (_UNSAFE_IN_LINES if lines else _UNSAFE).sub(_written_out, text)
    )


def _is_plain(text: str) -> bool:
    """Whether the text has only printable characters of Latin-1, as most have.

    This takes a third of the time of a search. Beyond Latin-1, printable characters can be hidden.
    """
    if not text.isprintable():
        return False
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


_HALVES = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    r"""The text with everything that UTF-8 cannot encode escaped: paths may be arbitrary bytes."""
    return _HALVES.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    sign = found[0]
    code = ord(sign)
    if code > 0xFFFF and unicodedata.category(sign) != "Cf" and not 0xE0000 <= code <= 0xE0FFF:
        return sign
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def to_json(document: Any, *, ascii: bool = False) -> str:
    """JSON on one line, with terminal control characters as JSON escapes: the same data."""
    text = json.dumps(document, ensure_ascii=ascii, allow_nan=False)
    return text if _is_plain(text) else _UNSAFE.sub(lambda found: _in_json(found[0]), text)


def _in_json(sign: str) -> str:
    shown = _written_out(cast("re.Match[str]", [sign]))
    return sign if shown == sign else json.dumps(sign)[1:-1] if ord(sign) != 0x7F else "\\u007f"


def print_json(document: Any) -> None:
    """JSON on standard output, in ASCII if its encoding lacks characters.

    A value of the document may be an iterator, whose elements are printed one by one as a list.
    """
    ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
    named = document.items() if isinstance(document, dict) else ()
    if not any(isinstance(value, Iterator) for _, value in named):
        print(to_json(document, ascii=ascii))
        return
    before = "{"
    for key, value in named:
        print(f"{before}{to_json(key, ascii=ascii)}: ", end="")
        before = ", "
        if not isinstance(value, Iterator):
            print(to_json(value, ascii=ascii), end="")
            continue
        print("[", end="")
        for place, one in enumerate(value):
            print(", " if place else "", to_json(one, ascii=ascii), sep="", end="")
        print("]", end="")
    print("}")


def visible_in(document: Any) -> Any:
    """A document with all texts escaped."""
    if isinstance(document, str):
        return visible(document, lines=True)
    if isinstance(document, dict):
        return {visible_in(key): visible_in(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        # Most lists are of numbers, and long.
        return [value if type(value) in (float, int) else visible_in(value) for value in document]
    return document


PLAIN = {
    "–": "-", "—": "-", "−": "-", "×": "x", "±": "+-", "…": "...", "µ": "u", "·": "-", "≤": "<=",
    "≥": ">=", "\u00a0": " ", "\u202f": " ", "→": "->", "’": "'", "“": '"', "”": '"', "σ": "s",
    "─": "-",
}  # fmt: skip
"""ASCII replacements for our own characters, for terminals without Unicode."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    plain = (PLAIN.get(sign, sign).encode("ascii", "backslashreplace") for sign in signs)
    return b"".join(plain).decode("ascii"), error.end


codecs.register_error("talkspurt", _plainly)


def encoded(text: str, encoding: str) -> str:
    """The text as a terminal of this encoding will show it: missing characters in ASCII."""
    try:
        return text.encode(encoding, "talkspurt").decode(encoding)
    except LookupError:  # an unknown encoding
        return text.encode("ascii", "talkspurt").decode("ascii")


class Screen(io.TextIOBase):
    """Standard output or standard error that cannot emit terminal control sequences.

    The terminal may have any encoding; missing characters are written in ASCII. A closed reader of
    standard error is ignored, and work continues.
    """

    def __init__(self, stream: IO[str], *, read: bool = True) -> None:
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError, OSError):
                stream.reconfigure(errors="talkspurt")
        self.stream = stream
        self._careless: tuple[type[Exception], ...] = () if read else (OSError, ValueError)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(cast("Any", self.stream).encoding)

    @property
    def buffer(self) -> Any:
        return cast("Any", self.stream).buffer

    def write(self, text: str) -> int:
        """Print trusted or untrusted text."""
        with contextlib.suppress(*self._careless):
            self.stream.write(visible(text, lines=True))
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        with contextlib.suppress(*self._careless):
            self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()


def below(stream: IO[str]) -> IO[str]:
    """The underlying stream, for intentional control sequences."""
    return stream.stream if isinstance(stream, Screen) else stream


def guard() -> None:
    """Route all further output through a Screen."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed at startup
            stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 for good
        if not isinstance(stream, Screen):
            setattr(sys, name, Screen(stream, read=name == "stdout"))
