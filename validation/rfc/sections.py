"""Write the index of section numbers against which citations are checked.

Usage: ``python -m validation.rfc.sections FOLDER > tests/rfc_sections.txt``

FOLDER contains RFC texts as published (``rfcNNNN.txt``) and, under ``drafts/``, kramdown sources of
drafts. Each line of the index is a document and its section numbers. The index contains only
numbers, no text of the documents.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Kramdown sources and the names under which they are cited. RFC 9438's source is its last draft.
DRAFTS = {
    "draft-ietf-ccwg-bbr.md": "draft-ietf-ccwg-bbr",
    "draft-ietf-ccwg-rfc8298bis-screamv2.md": "draft-ietf-ccwg-rfc8298bis-screamv2",
    "draft-ietf-tsvwg-multipath-dccp.md": "draft-ietf-tsvwg-multipath-dccp",
    "rfc9438-source-draft-ietf-tcpm-rfc8312bis.md": "RFC9438",
}

NUMBERED = re.compile(r"^(\d\d?(?:\.\d+)*)\.?\s+(?!Aug 1980)[A-Z\"'(<]")
INDENTED = re.compile(r"^\s*(\d+(?:\.\d+)+)\.?\s+[A-Z\"'(<]")
APPENDIX = re.compile(r"^\s{0,6}(?:APPENDIX|Appendix)\s+([A-Z])(\.\d+(?:\.\d+)*)?\b")
RULE = re.compile(r"^\s+\((\d\.\d)\)\s")  # RFC 6298 numbers its rules like sections
LETTERED = re.compile(r"^\s{0,6}([A-Z](?:\.\d+)+)\.?\s+\S")


def sections(text: str) -> list[str]:
    """Section numbers of an RFC's text.

    A heading starts at the left margin, where no other numbered text is. RFC 1122 indents its
    subsections: there an indented heading needs a number with at least two parts.
    """
    lines = [line.rstrip() for line in text.replace("\f", "\n").splitlines()]
    patterns = [NUMBERED, APPENDIX, LETTERED]
    if any("Computing TCP's Retransmission Timer" in line for line in lines[:60]):
        patterns.append(RULE)
    if any("Requirements for Internet Hosts" in line for line in lines[:60]):
        patterns.append(INDENTED)
    return list(
        {
            "".join(part or "" for part in match.groups()): None
            for line in lines
            for pattern in patterns
            if (match := pattern.match(line))
        }
    )


def kramdown(text: str) -> list[str]:
    """Section numbers of a draft's kramdown source: headings after ``--- middle`` are counted."""
    found, counts, back = [], [0] * 7, False
    middle = False
    fenced = False
    for line in text.splitlines():
        if line.startswith(("~~~", "```")):
            fenced = not fenced
        elif line.startswith("--- middle"):
            middle = True
        elif line.startswith("--- back"):
            back, counts = True, [0] * 7
        elif middle and not fenced and (match := re.match(r"^(#{1,6})\s+\S", line)):
            if 'numbered="false"' in line or "{:numbered" in line:
                continue
            depth = len(match[1])
            counts[depth - 1] += 1
            counts[depth:] = [0] * (7 - depth)
            first = chr(ord("A") + counts[0] - 1) if back else str(counts[0])
            found.append(".".join([first, *map(str, counts[1:depth])]))
    return found


def order(number: str) -> list[tuple[bool, int, str]]:
    """Sorts 2 before 10 and both before A."""
    return [
        (part.isalpha(), 0 if part.isalpha() else int(part), part) for part in number.split(".")
    ]


def main(folder: str) -> None:
    """Print the index of FOLDER."""
    root = Path(folder)
    index = {}
    for path in root.glob("rfc[0-9]*.txt"):
        index[f"RFC{path.stem[3:]}"] = sections(path.read_text(errors="replace"))
    for name, cited in DRAFTS.items():
        index[cited] = kramdown((root / "drafts" / name).read_text())
    print(
        "# Section numbers of RFCs and drafts, written by validation/rfc/sections.py from the texts"
    )
    print(
        "# as published by the RFC Editor and the drafts' sources. RFC 9438 is its draft's source."
    )
    for name, numbers in sorted(
        index.items(), key=lambda item: (not item[0].startswith("RFC"), item[0].zfill(60))
    ):
        print(f"{name}:", *sorted(numbers, key=order))


if __name__ == "__main__":
    main(sys.argv[1])
