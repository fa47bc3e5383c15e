"""Writes docs/validation/captures.md and its data from the differences that compare.py found."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT, made
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "captures.md"
DATA = Path(__file__).with_name("captures.csv")
COMPARED = ("tcp", "sctp", "dccp")
UNEXPLAINED = "**unexplained**"


@dataclass
class Row:
    """A file: each pair of numbers is tshark's and that of import."""

    repository: str
    path: str
    sha256: str
    frames: int = 0
    imported: int = 0
    error: str = ""
    announced: int = 0
    streams: tuple[int, int] = (0, 0)
    both: int = 0
    packets: tuple[int, int] = (0, 0)
    lost: tuple[int, int] = (0, 0)
    jitter_compared: int = 0
    jitter_equal: int = 0
    transports: dict[str, list[int]] = field(default_factory=dict)
    """Packets, then conversations."""
    causes: Counter[str] = field(default_factory=Counter)

    @property
    def compared(self) -> bool:
        """Whether it has a protocol of the comparison."""
        return any(self.streams) or any(map(any, self.transports.values()))


COLUMNS = (
    "repository", "path", "sha256", "frames", "rtp_announced", "rtp_tshark", "rtp_import",
    "rtp_both", "packets_tshark", "packets_import", "lost_tshark", "lost_import",
    "jitter_compared", "jitter_equal", "tcp", "sctp", "dccp", "differences",
)  # fmt: skip


def table_row(row: Row) -> list[object]:
    """In the CSV; TCP, SCTP and DCCP: packets and conversations, tshark's first."""
    counts = [" ".join(map(str, row.transports.get(name, ()))) for name in COMPARED]
    causes = "; ".join(f"{n} {cause}" for cause, n in sorted(row.causes.items()))
    return [row.repository, row.path, row.sha256, row.frames, row.announced, *row.streams,
            row.both, *row.packets, *row.lost, row.jitter_compared, row.jitter_equal, *counts,
            causes]  # fmt: skip


def write(folder: Path, rows: list[Row]) -> None:
    """The page and its data."""
    shown = [row for row in rows if row.compared]
    with DATA.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *map(table_row, shown)])
    media = [row for row in shown if any(row.streams) or {"sctp", "dccp"} & row.transports.keys()]
    told = made(PAGE, DATA)
    commits = {
        name: commit(folder / name) for name in dict.fromkeys(row.repository for row in rows)
    }
    about = [("made", told["date"]), ("commit of talkspurt", f"`{told['commit'][:10]}`"
             + told["modified"]), ("program", told["tshark"])]  # fmt: skip
    heads = "repository | commit | captures | results | errors | RTP | TCP, SCTP, DCCP"
    fill(
        PAGE,
        {
            "made": table(("", ""), about),
            "collections": table(heads, collections(commits, rows), "llrrrrr"),
            "sums": table("of all captures | tshark | import", sums(rows), "lrr"),
            "causes": table("difference | captures | count", causes(rows), "lrr"),
            "unexplained": sum(
                n for row in rows for cause, n in row.causes.items() if UNEXPLAINED in cause
            ),
            "errors": table("error | captures", errors(rows), "lr"),
            "files": table(FILE_HEADS, (page_row(row, commits) for row in media), "llrrrrrrr"),
        },
    )


def commit(clone: Path) -> str:
    """Of a clone."""
    words = ["git", "-C", clone, "rev-parse", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def collections(commits: dict[str, str], rows: list[Row]) -> Iterator[list[object]]:
    """The repositories."""
    for name, made_from in commits.items():
        ours = [row for row in rows if row.repository == name]
        errors = sum(bool(row.error) for row in ours)
        yield [f"[{name}](https://github.com/{name})", f"`{made_from[:10]}`", len(ours),
               len(ours) - errors, errors, sum(any(row.streams) for row in ours),
               sum(bool(row.transports) for row in ours)]  # fmt: skip


def sums(rows: list[Row]) -> Iterator[list[object]]:
    """Of all captures."""
    read = [row for row in rows if not row.error]
    yield "frames, of captures with a result", *(f"{sum(map(of, read)):,}" for of in (
        lambda row: row.frames, lambda row: row.imported))  # fmt: skip
    yield "RTP streams that are announced", f"{sum(row.announced for row in rows):,}", ""
    for name in ("streams", "packets", "lost"):
        title = {"streams": "RTP streams", "packets": "packets in both's streams",
                 "lost": "lost packets in both's streams"}[name]  # fmt: skip
        yield title, *(f"{sum(getattr(row, name)[i] for row in rows):,}" for i in (0, 1))
    streams, equal = (sum(getattr(row, name) for row in rows)
                      for name in ("jitter_compared", "jitter_equal"))  # fmt: skip
    yield "streams with jitter in both", f"{streams:,}", f"{equal:,} equal"
    for protocol in COMPARED:
        counts = [row.transports[protocol] for row in rows if protocol in row.transports]
        for what, place in (("packets", 0), ("conversations", 2)):
            both = (f"{sum(one[place + i] for one in counts):,}" for i in (0, 1))
            yield f"{protocol.upper()} {what}", *both


def causes(rows: list[Row]) -> list[list[object]]:
    """All differences."""
    files, counts = Counter[str](), Counter[str]()
    for row in rows:
        files.update(row.causes.keys())
        counts.update(row.causes)
    return [[cause.replace("|", "\\|"), files[cause], n] for cause, n in sorted(counts.items())]


def errors(rows: list[Row]) -> list[list[object]]:
    """Those of import, without what differs by file."""
    heads = (row.error.partition(": ")[0] for row in rows if row.error)
    kinds = Counter(re.sub(r"type \d+.*?,", "type …,", head) for head in heads)
    return [[kind, n] for kind, n in kinds.most_common()]


FILE_HEADS = (
    "capture | SHA-256 | frames | streams of tshark, announced | of tshark, all | of import | "
    "packets of RTP | lost | packets of SCTP, DCCP"
)


def page_row(row: Row, commits: dict[str, str]) -> list[object]:
    """A capture with RTP, SCTP or DCCP; one number where both agree."""

    def both(pair: Iterable[int]) -> str:
        return " / ".join(map(str, dict.fromkeys(pair)))

    others = [
        f"{name.upper()} {both(row.transports[name][:2])}"
        for name in ("sctp", "dccp")
        if name in row.transports
    ]
    of = f"https://github.com/{row.repository}/blob/{commits[row.repository][:10]}"
    link = f"[{row.repository.partition('/')[2]}: {row.path}]({of}/{quote(row.path)})"
    return [link, f"`{row.sha256[:12]}`", row.frames, row.announced, *row.streams,
            both(row.packets), both(row.lost), ", ".join(others)]  # fmt: skip
