"""Fills docs/validation/calls.md from calls.json alone.

.venv/bin/python validation/emulate/calls_page.py [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from calls import FILE, LADDERS, MARGINS, NETWORKS, ROOT, RUNS, SECONDS, within

sys.path.append(str(Path(__file__).parents[1]))
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "calls.md"
SCALES = {"delay_p50_s": (1e3, 1), "loss_ratio": (100, 1), "mos": (1, 2)}
"""Factor and digits of each measure."""
NAMES = {"pcmu": "G.711", "amr-12.2": "AMR at 12.2 kbit/s", "opus": "Opus"}
DIRECTIONS = (0, 1)


def both(row: dict[str, Any], key: str) -> tuple[str, str]:
    """Both directions of the call, bold outside of the band, and the ranges of the simulations."""
    scale, digits = SCALES[key]
    calls, ranges = [], []
    for way in DIRECTIONS:
        value, band = row["real"][way][key], row["simulated"][way][key]
        text, low, high = (
            "–" if it is None else f"{scale * it:.{digits}f}"
            for it in (value, *((band[0], band[2]) if band else (None, None)))
        )
        is_bold = None not in (value, band) and not within(value, band, key)
        calls.append(f"**{text}**" if is_bold else text)
        ranges.append(low if low == high else f"{low} – {high}")
    return ", ".join(calls), ", ".join(ranges)


def scores(rows: list[dict[str, Any]], codec: str) -> str:
    """A call in each line, with the measures that any has."""
    known = [key for key in MARGINS if any(row["real"][0][key] is not None for row in rows)]
    titles = {"delay_p50_s": "delay, ms", "loss_ratio": "not heard, %", "mos": "MOS"}
    heads = ["network | transport", *(f"{titles[key]}: call | simulated" for key in known)]
    cells = (
        [row["network"], row["transport"], *(cell for key in known for cell in both(row, key))]
        for row in rows
    )
    return f"### {NAMES[codec]}\n\n{table(' | '.join(heads), cells)}"


def changes(rows: list[dict[str, Any]]) -> str:
    """Of codecs over TFRC-TB with the ladder of G.711."""
    ladder = LADDERS["pcmu"].split(",")
    cells = []
    for row in rows:
        if row["transport"] != "tfrc-tb" or row["codec"] != "pcmu":
            continue
        used = [[ladder[at] for at in row["real"][way]["encodings"]] for way in DIRECTIONS]
        ours = (dict.fromkeys(map(str, row["simulated"][way]["changes"])) for way in DIRECTIONS)
        cells.append([
            row["network"],
            "; ".join(" → ".join(codecs) for codecs in used),
            ", ".join(str(len(codecs)) for codecs in used),
            ", ".join(" – ".join(counts) for counts in ours),
        ])  # fmt: skip
    return table("network | codecs of the call, from each end | changes | simulated", cells)


def write(page: Path) -> None:
    """Write the page."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    whole = [row for row in rows if row["status"] == 0]
    inside = [
        within(row["real"][way][key], row["simulated"][way][key], key)
        for row in whole for way in DIRECTIONS for key in MARGINS
        if None not in (row["real"][way][key], row["simulated"][way][key])
    ]  # fmt: skip
    parts = {
        "networks": table(["network", ""], NETWORKS.items()),
        "seconds": SECONDS, "runs": RUNS, "calls": len(whole), "compared": len(inside),
        "agree": sum(inside), "late": f"{max(row['late_p99_s'] for row in whole) * 1e3:.2f}",
        "tables": "\n\n".join(
            scores(found, codec)
            for codec in LADDERS
            if (found := [row for row in whole if row["codec"] == codec])
        ),
        "changes": changes(whole),
    }  # fmt: skip
    fill(PAGE, parts, page)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
