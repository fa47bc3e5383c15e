"""Every cited section of an RFC exists.

``rfc_sections.txt`` holds the section numbers of the texts, written by validation/rfc/sections.py.
The test reads every tracked source file, so that a citation from memory of a section that does not
exist fails. It cannot tell whether the section says what the citation claims.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from command import output, process

ROOT = Path(__file__).resolve().parent.parent

# Cited documents whose text is not in the index: their sections are not checked here.
WITHOUT_TEXT = {
    "RFC 1071": "Internet checksum",
    "RFC 1624": "incremental update of the Internet checksum",
    "RFC 1661": "PPP",
    "RFC 1662": "PPP in HDLC-like framing",
    "RFC 1812": "requirements for routers",
    "RFC 2364": "PPP over AAL5",
    "RFC 2488": "TCP over satellite channels",
    "RFC 2516": "PPP over Ethernet",
    "RFC 2647": "benchmarking terms of firewalls",
    "RFC 2684": "multiprotocol encapsulation over AAL5",
    "RFC 2784": "GRE",
    "RFC 2890": "key and sequence number of GRE",
    "RFC 2988": "retransmission timer, before RFC 6298",
    "RFC 3032": "MPLS",
    "RFC 3542": "sockets API for IPv6",
    "RFC 4443": "ICMPv6",
    "RFC 4737": "packet reordering",
    "RFC 7714": "AES-GCM in SRTP",
    "RFC 5927": "ICMP attacks against TCP",
    "RFC 6189": "ZRTP",
    "RFC 6335": "port numbers",
    "RFC 6437": "IPv6 flow label",
    "RFC 6691": "TCP's MSS",
    "RFC 6864": "IPv4 identification",
    "RFC 7464": "JSON text sequences",
    "RFC 7637": "Ethernet in GRE",
    "RFC 7983": "multiplexing of RTP, DTLS and STUN",
    "RFC 8200": "IPv6",
    "RFC 8439": "ChaCha20 and Poly1305",
    "RFC 8926": "Geneve",
    "RFC 9112": "HTTP/1.1",
    "RFC 9406": "HyStart++",
    "RFC 9937": "proportional rate reduction",
    "draft-alvestrand-rmcat-remb": "REMB",
    "draft-holmer-rmcat-transport-wide-cc-extensions": "transport-wide feedback",
    "draft-ietf-opsawg-pcapng": "pcapng",
}

DOCUMENT = re.compile(r"\bRFC[ -]?(\d{3,5})\b|\b(draft-[a-z0-9-]+[a-z])(?:-\d\d)?\b")
# What else has sections: a § right after one of these, or after the year of a paper, is not an RFC's.
OTHER = re.compile(
    r"\b((?:19|20)\d\d|ITU-T|G\.\d{3,4}|P\.\d{2,3}|IEEE|802\.11\w*|Recommendation|libpcap|qlog|Parquet|next\.md)\b"
)
MARK = re.compile(r"§\s*|\b[Aa]ppendix\s+|\b[Ss]ections?\s+(?=\d+\.\d)")
NUMBER = re.compile(r"(\d+(?:\.\d+)*|[A-Z](?:\.\d+)*)\b")
# Another number under the same mark: "§6.1.1 and 6.1.2", "§2.1 to 2.4", "§8.5.1, §8.5.2".
MORE = re.compile(r"(?:,| and| or| to|–|-)\s*(\d+\.\d+(?:\.\d+)*)\b(?!\s*(?:%|ms|s\b|kb|Mb|times))")


# What may stand between a document's name, or the citation before, and its section.
NEAR = re.compile(r"[\s,;:()]*(?:and |or |to )?\s*")


@dataclass(frozen=True)
class Citation:
    """One cited section, and where; a bare one does not name its document."""

    file: str
    line: int
    document: str | None
    section: str


def index() -> dict[str, set[str]]:
    """Documents and their section numbers."""
    lines = (ROOT / "tests/rfc_sections.txt").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if not line.startswith("#"))
    return {re.sub(r"^RFC", "RFC ", name): set(numbers.split()) for name, numbers in pairs}


def citations(text: str, file: str) -> list[Citation]:
    """All citations of a text."""
    # Comment marks at the beginnings of lines separate "RFC 5348" from "§4.3" on the next line.
    text = re.sub(r"\n[ \t]*(?://[/!]?|#|\*)?[ \t]*", lambda m: "\n" + " " * (len(m[0]) - 1), text)
    anchors: list[tuple[int, int, str | None]] = [
        (match.start(), match.end(), f"RFC {match[1]}" if match[1] else match[2])
        for match in DOCUMENT.finditer(text)
    ]
    anchors = sorted(anchors + [(m.start(), m.end(), "") for m in OTHER.finditer(text)])
    found = []
    place, end, document = 0, 0, None
    for mark in MARK.finditer(text):
        while place < len(anchors) and anchors[place][0] < mark.start():
            _, end, document = anchors[place]
            place += 1
        near = NEAR.fullmatch(text, end, mark.start()) is not None
        match = NUMBER.match(text, mark.end())
        if near and document == "":
            end = match.end() if match else mark.end()
            continue
        line = text.count("\n", 0, mark.start()) + 1
        while match:
            found.append(Citation(file, line, document if near else None, match[1]))
            last = match.end()
            match = MORE.match(text, last)
        if near:
            end = last
    return found


def documents(text: str) -> set[str]:
    """The documents that a text names."""
    return {f"RFC {m[1]}" if m[1] else m[2] for m in DOCUMENT.finditer(text)}


def tracked() -> list[Path]:
    """Text files that may cite: what git tracks, but for generated pages and data."""
    listed = output("git", "ls-files", "-z", cwd=ROOT).split("\0")
    kinds = {".rs", ".py", ".md", ".toml", ".c", ".h", ".html", ".j2", ".js"}
    skipped = ("tests/test_citations.py", "CHANGELOG.md", "python/talkspurt/web/vendor/")
    return [
        ROOT / name
        for name in listed
        if Path(name).suffix in kinds and not name.startswith(skipped) and (ROOT / name).is_file()
    ]


def wrong(text: str, file: str, known: dict[str, set[str]]) -> list[str]:
    """What a file cites and is not there.

    A bare section ("§7.5.2", in a file whose head says that it implements RFC 4340) must exist in
    one of the documents that the file names.
    """
    here = documents(text)
    sections = set().union(*(known.get(document, set()) for document in here))
    return [
        f"{file}:{citation.line}: "
        + (
            f"{citation.document} has no section {citation.section}"
            if citation.document
            else f"no document named in this file has a section {citation.section}"
        )
        for citation in citations(text, file)
        if (
            citation.section not in known[citation.document]
            if citation.document in known
            else not citation.document
            and here
            and here <= set(known)
            and citation.section not in sections
        )
    ]


def texts() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in tracked()}


def test_every_cited_section_exists():
    known = index()
    faults = [fault for file, text in texts().items() for fault in wrong(text, file, known)]
    assert not faults, "\n" + "\n".join(faults)


def test_citations_are_found_at_all():
    direct = [c for file, text in texts().items() for c in citations(text, file) if c.document]
    assert len(direct) > 1000
    assert len({citation.document for citation in direct}) > 50


def test_documents_without_text_are_named():
    known = index()
    cited = {
        citation.document
        for file, text in texts().items()
        for citation in citations(text, file)
        if citation.document
    }
    assert cited - set(known) == set(WITHOUT_TEXT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RFC 5348 §4.3", [("RFC 5348", "4.3")]),
        ("// as RFC 5348\n    /// §6.3.1 wants", [("RFC 5348", "6.3.1")]),
        ("RFC 4340 §7.5.1 and 7.5.2", [("RFC 4340", "7.5.1"), ("RFC 4340", "7.5.2")]),
        ("RFC 9260 appendix A, RFC 8260 §2.2", [("RFC 9260", "A"), ("RFC 8260", "2.2")]),
        ("draft-ietf-ccwg-bbr-06 §5.3.3.8", [("draft-ietf-ccwg-bbr", "5.3.3.8")]),
        ("RFC 6298 and ITU-T G.107 §7.1", []),
        ("RFC 9260 says so (§7.2.4)", [(None, "7.2.4")]),
        ("RFC 8985 §6.2 step 2, 4.5 ms", [("RFC 8985", "6.2")]),
    ],
)
def test_reads_citations(text, expected):
    assert [(found.document, found.section) for found in citations(text, "x")] == expected


def test_a_section_that_does_not_exist_is_found():
    known = index()
    for text in (
        "// RFC 5348 §4.7",
        "//! RFC 5348\n//! says that\n// in §4.7",
        "RFC 9260 appendix C",
    ):
        assert len(wrong(text, "x.rs", known)) == 1
    for text in (
        "// RFC 5348 §6.3.1",
        "RFC 4340: §7.5.2",
        "RFC 9260 appendix A",
        "RFC 9438 §4.9.2",
    ):
        assert not wrong(text, "x.rs", known)


def test_files_that_pages_name_exist():
    """Paths in back quotes with a folder of this repository in front."""
    names = process("git", "ls-files", cwd=ROOT)
    if names.returncode:
        pytest.skip("no checkout of git")
    files = set(names.stdout.splitlines())
    named = re.compile(
        r"`((?:crates|python|tests|validation|scenarios|docs|benches|fuzz)/[\w./-]+\.\w+)`"
    )
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    absent = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in pages
        if page.name != "CHANGELOG.md"
        for path in named.findall(page.read_text(encoding="utf-8"))
        if path not in files
    ]
    # Patterns of names, and the files that the pages on extending have their readers write.
    written = [line for line in absent if "NNNN" in line or line.startswith("docs/adding-a-")]
    assert absent == written
