"""The command that reads a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from talkspurt._commands.options import Out, Overwrite, Report, Several
from talkspurt._commands.running import say_where
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.metrics.catalogue import column
from talkspurt.results.result import Result
from talkspurt.scenarios.resolved import duration_s


def import_(
    *traces: Path,
    out: Out = None,
    payload: Several = None,
    sdp: Path | None = None,
    playout: str = "adaptive",
    network_delay: str | None = None,
    clock_offset: str | None = None,
    as_network: Path | None = None,
    report: Report = True,
    overwrite: Overwrite = False,
) -> None:
    """Read a trace, a capture or a browser's recording into a folder like that of a run.

    All commands for results accept the folder. What a trace does not contain
    is null in its tables; manifest.json has the file's SHA-256, what was
    assumed and what is not known.

    Parameters
    ----------
    traces
        A trace of ns-2 (wired, or either wireless format); a capture (pcap or pcapng) of RTP, UDP,
        TCP, SCTP or DCCP; an RTC event log; or two of these, one at each end of a path: packets in
        both give loss and delay; or a dump of chrome://webrtc-internals or samples of getStats as
        JSON.
    out
        Folder for the tables; default: runs/NAME.
    payload
        TYPE=ENCODING/CLOCK/CHANNELS, as SDP has it, gives the meaning of a payload type of RTP,
        as in --payload 96=opus/48000/2; may be repeated. Well-known encodings need no clock.
    sdp
        File with a session description, besides those in the capture.
    playout
        Jitter buffer of calls: adaptive, talkspurt, libwebrtc, a duration (fixed, from the first
        packet that arrives), or a table as in a scenario.
    network_delay
        Network delay before a single capture; without it, mouth-to-ear delay is not known, and MOS
        an upper limit.
    clock_offset
        Clock of the second capture minus that of the first, as in 12.5ms or -3ms; default: 0.
    as_network
        Folder for what the trace shows of the network: delays and losses over time as link traces,
        and network.toml, a scenario with these links and the trace's calls.
    report
        Whether to draw figures and write report.html.
    """
    # The help of all commands needs none of it.
    from talkspurt.importing import reading

    if not 1 <= len(traces) <= 2:
        raise BadInputError(
            f"import: expected one trace, or two captures or event logs, found {len(traces)}"
        )
    faults: list[str] = []
    fault = reading.jitter_buffer(playout)[1]
    faults += [fault] if fault else []
    delay = None if network_delay is None else _seconds("--network-delay", network_delay, faults)
    sign = -1 if clock_offset is not None and clock_offset.startswith("-") else 1
    offset = 0.0
    if clock_offset is not None:
        offset = sign * _seconds("--clock-offset", clock_offset.lstrip("-"), faults)
    faults += reading.unfit(len(traces), delay is not None, clock_offset is not None)
    payloads = _payloads(payload or [], faults)
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    result = reading.import_trace(
        traces, payloads=payloads, playout=playout, sdp=sdp, delay_s=delay, clock_offset_s=offset,
        as_network=as_network, overwrite=overwrite,
    )  # fmt: skip
    folder = out or Path("runs") / result.name
    result.save(folder, report=report, overwrite=overwrite)
    _say(result, folder, report=report)
    if as_network is not None:
        print(visible(f"Network: {as_network / 'network.toml'}"))


def _seconds(option: str, text: str, faults: list[str]) -> float:
    found = duration_s(text)
    if found is None:
        faults.append(f"{option} {text}: expected a duration, as in 20ms or 1.5s")
        return 0.0
    return found


def _payloads(texts: Sequence[str], faults: list[str]) -> dict[int, str]:
    from talkspurt.importing.reading import wrong_payload
    from talkspurt.importing.sessions import Payload

    found = {}
    for text in texts:
        kind, _, name = text.partition("=")
        if not kind.isdigit() or int(kind) > 127 or Payload.parse(name) is None:
            faults.append(wrong_payload(text))
        else:
            found[int(kind)] = name
    return found


SAID = ("goodput_bps", "jitter_s", "concealed_ratio", "mos", "estimated_mos")
"""The measures of a flow that are printed."""


def _say(result: Result, folder: Path, *, report: bool) -> None:
    from talkspurt.analysis.answer import LIMIT

    imported = result.manifest["imported"]
    for row in result.flows.iter_rows(named=True):
        counts = {
            "sent": row["sent_packets"], "received": row["received_packets"],
            "lost": row["lost_packets"],
        }  # fmt: skip
        said = ", ".join(
            f"{'unknown' if count is None else count} {what}" for what, count in counts.items()
        )
        at_most = {"concealed_ratio": "at most "} if LIMIT in (row["quality_note"] or "") else {}
        known = "".join(
            f"; {one.label} {at_most.get(one.name, '')}{one.of(row, unit=True)}"
            for one in map(column, SAID)
            if row[one.name] is not None
        )
        print(visible(f"{row['name']}: {row['from']} to {row['to']}, packets {said}{known}"))
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
