"""Implements ``talkspurt import``: prints and writes the result of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt._commands.running import say_where
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.importing.reading import import_trace, unfit, unknown_encoding
from talkspurt.scenarios.resolved import duration_s

if TYPE_CHECKING:
    from talkspurt.results.result import Result


def import_(
    files: Sequence[Path],
    *,
    out: Path | None,
    payload: Sequence[str],
    playout: str,
    network_delay: str | None,
    clock_offset: str | None,
    report: bool,
    overwrite: bool,
) -> None:
    """Import, print what was found, and write the folder."""
    if not 1 <= len(files) <= 2:
        raise BadInputError(f"import: expected one trace, or two captures, found {len(files)}")
    faults: list[str] = []
    buffer = _seconds("--playout", playout, faults)
    delay = None if network_delay is None else _seconds("--network-delay", network_delay, faults)
    sign = -1 if clock_offset is not None and clock_offset.startswith("-") else 1
    offset = 0.0
    if clock_offset is not None:
        offset = sign * _seconds("--clock-offset", clock_offset.lstrip("-"), faults)
    faults += unfit(len(files), delay is not None, clock_offset is not None)
    payloads = _payloads(payload, faults)
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    result = import_trace(
        files, payloads=payloads, playout_s=buffer, delay_s=delay, clock_offset_s=offset
    )
    folder = out or Path("runs") / result.name
    result.save(folder, report=report, overwrite=overwrite)
    _say(result, folder, report=report)


def _seconds(option: str, text: str, faults: list[str]) -> float:
    found = duration_s(text)
    if found is None:
        faults.append(f"{option} {text}: expected a duration, as in 20ms or 1.5s")
        return 0.0
    return found


def _payloads(texts: Sequence[str], faults: list[str]) -> dict[int, str]:
    found = {}
    for text in texts:
        kind, _, name = text.partition("=")
        if not kind.isdigit() or int(kind) > 127 or not name:
            faults.append(f"--payload {text}: expected TYPE=ENCODING, as in 111=opus")
        elif fault := unknown_encoding(text, name):
            faults.append(fault)
        else:
            found[int(kind)] = name
    return found


def _say(result: Result, folder: Path, *, report: bool) -> None:
    """Print the flows, what was assumed and where the folder is."""
    imported = result.manifest["imported"]
    for row in result.flows.iter_rows(named=True):
        counts = {
            "sent": row["sent_packets"], "received": row["received_packets"],
            "lost": row["lost_packets"],
        }  # fmt: skip
        said = ", ".join(
            f"{'unknown' if count is None else count} {what}" for what, count in counts.items()
        )
        score = "" if row["mos"] is None else f"; MOS {row['mos']:.2f}"
        print(visible(f"{row['name']}: {row['from']} to {row['to']}, packets {said}{score}"))
    for note in imported["notes"]:
        print(visible(f"Note: {note}."))
    if "clock_offset_estimate_s" in imported:
        estimate, bound = imported["clock_offset_estimate_s"], imported["clock_offset_bound_s"]
        print(
            f"Clock offset: {imported['clock_offset_s'] * 1e3:g} ms was assumed; by the fastest "
            f"packets of both directions another {estimate * 1e3:.3f} ms ± {bound * 1e3:.3f} ms."
        )
    for what, count in imported["not_imported"].items():
        print(visible(f"Not imported: {count} {what}."))
    say_where(folder, report, beside=True)
