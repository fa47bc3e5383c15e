"""Two directions of a flow that end at different times."""

from pathlib import Path

import pytest

import talkspurt

SPEECH_FILE = Path(__file__).parents[1] / "speech" / "sense-and-sensibility.wav"
SPEECH = {
    "kind": "speech",
    "codec": "pcmu",
    "file": str(SPEECH_FILE),
}
LONGER = {**SPEECH, "repeat": True}


@pytest.mark.parametrize(
    "transport",
    [
        {"kind": "udp"},
        {"kind": "tcp", "controller": "newreno"},
        {"kind": "sctp"},
        {"kind": "dccp", "ccid": 2},
        {"kind": "dccp", "ccid": 3},
    ],
    ids=lambda transport: str(transport.get("ccid", transport["kind"])),
)
@pytest.mark.parametrize(("source", "reverse"), [(SPEECH, LONGER), (LONGER, SPEECH)])
def test_a_side_that_has_said_all_does_not_cut_off_the_other(
    transport: dict[str, object], source: dict[str, object], reverse: dict[str, object]
) -> None:
    """DCCP and SCTP have no half-closed states (RFC 4340 §4.6, RFC 9260 §9)."""
    queue = {"kind": "droptail", "packets": 100}
    link = {"from": "a", "to": "b", "rate": "2Mbit/s", "delay": "20ms", "queue": queue}
    call = {"from": "a", "to": "b", "transport": transport, "source": source, "reverse": reverse}
    scenario = {
        "title": "both ways",
        "duration": "20s",
        "links": {"line": link},
        "flows": {"call": {**call, "stop": "15s"}},
    }
    result = talkspurt.run(scenario)
    flows = {row["name"]: row for row in result.flows.to_dicts()}
    longer = "call" if source is LONGER else "call.reverse"
    assert flows[longer]["generated_packets"] == 749
    assert [row["missing_packets"] for row in flows.values()] == [0, 0]
    closed = result.table("events").filter(event="closed")["time_s"].to_list()
    if transport["kind"] in ("sctp", "dccp"):
        assert len(closed) == 2 and min(closed) > 15, "when both have said goodbye"


@pytest.mark.parametrize(
    "transport",
    [{"kind": "sctp"}, {"kind": "dccp", "ccid": 2}, {"kind": "dccp", "ccid": 3}],
    ids=lambda transport: str(transport.get("ccid", transport["kind"])),
)
@pytest.mark.parametrize("first", ["source", "reverse"])
def test_data_that_end_first_do_not_cut_off_those_of_the_other_side(
    transport: dict[str, object], first: str
) -> None:
    """No RTCP tells that the other side has sent all: its stop does."""
    queue = {"kind": "droptail", "packets": 100}
    link = {"from": "a", "to": "b", "rate": "2Mbit/s", "delay": "20ms", "queue": queue}
    short = {"kind": "bulk", "total": "20kB"}
    long = {"kind": "cbr", "rate": "64kbit/s", "packet": "160B"}
    sources = {"source": short, "reverse": long}
    if first == "reverse":
        sources = {"source": long, "reverse": short}
    scenario = {
        "title": "both ways",
        "duration": "10s",
        "links": {"line": link},
        "flows": {
            "data": {"from": "a", "to": "b", "transport": transport, "stop": "8s", **sources}
        },
    }
    result = talkspurt.run(scenario)
    flows = {row["name"]: row for row in result.flows.to_dicts()}
    longer = flows["data.reverse" if first == "source" else "data"]
    assert longer["generated_packets"] > 380
    assert longer["received_packets"] > 380
    closed = result.table("events").filter(event="closed")["time_s"].to_list()
    assert len(closed) == 2 and 8 <= min(closed) < 8.5
