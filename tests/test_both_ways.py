"""Two directions of a flow that end at different times."""

import pytest

import talkspurt
from conftest import ROOT
from texts import NEWRENO, UDP, cbr, flow_text, link_text, scenario_text

FILE = ROOT / "speech" / "sense-and-sensibility.wav"
SPEECH = f'{{ kind = "speech", codec = "pcmu", file = "{FILE}" }}'
LONGER = SPEECH.replace(" }", ", repeat = true }")
WITH_GOODBYE = {
    "sctp": '{ kind = "sctp" }',
    "2": '{ kind = "dccp", ccid = 2 }',
    "3": '{ kind = "dccp", ccid = 3 }',
}
TRANSPORTS = {"udp": UDP, "tcp": NEWRENO, **WITH_GOODBYE}


def both_ways(transport, source, reverse, stop):
    """The rows of a flow and of its reverse, and when their ends closed."""
    flow = flow_text("call", "a>b", TRANSPORTS[transport], source, reverse=reverse, stop=f"{stop}s")
    line = link_text("line", "a>b", "2Mbit/s", "20ms")
    result = talkspurt.run(scenario_text("both ways", f"{stop + 5}s", line, flow))
    flows = {row["name"]: row for row in result.flows.to_dicts()}
    return flows, result.table("events").filter(event="closed")["time_s"].to_list()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("source", "reverse"), [(SPEECH, LONGER), (LONGER, SPEECH)])
def test_a_side_that_has_said_all_does_not_cut_off_the_other(transport, source, reverse):
    """DCCP and SCTP have no half-closed states (RFC 4340 §4.6, RFC 9260 §9)."""
    flows, closed = both_ways(transport, source, reverse, 15)
    longer = "call" if source is LONGER else "call.reverse"
    assert flows[longer]["generated_packets"] == 749
    assert [row["missing_packets"] for row in flows.values()] == [0, 0]
    if transport in WITH_GOODBYE:
        assert len(closed) == 2 and min(closed) > 15, "when both have said goodbye"


@pytest.mark.parametrize("transport", WITH_GOODBYE)
@pytest.mark.parametrize("first", ["source", "reverse"])
def test_data_that_end_first_do_not_cut_off_those_of_the_other_side(transport, first):
    """No RTCP tells that the other side has sent all: its stop does."""
    sources = ('{ kind = "bulk", total = "20kB" }', cbr("64kbit/s", "160B"))
    flows, closed = both_ways(transport, *sources[:: 1 if first == "source" else -1], 8)
    longer = flows["call.reverse" if first == "source" else "call"]
    assert longer["generated_packets"] > 380
    assert longer["received_packets"] > 380
    assert len(closed) == 2 and 8 <= min(closed) < 8.5
