"""Ctrl-C in real time, at any instant and twice: what was measured is written."""

import signal
import sys

import pytest

import talkspurt
from talkspurt._commands import entry, live
from talkspurt._commands.options import CallOptions, EmulateOptions, MeasureOptions
from talkspurt._storage import interrupts
from talkspurt.emulating import account
from talkspurt.emulating import command as emulating
from talkspurt.real_time import measuring
from test_call import HERE, answering
from test_emulate import NETWORK, real
from test_measure import server
from texts import put

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
SECRET = "a secret of these tests"


@pytest.fixture(autouse=True)
def interruptible(monkeypatch):
    """Signals as the command line handles them."""
    monkeypatch.setattr(entry, "_stops", 0)
    before = {number: signal.signal(number, entry._on_stop) for number in interrupts.STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def twice(monkeypatch):
    """Two interrupts before a function of a module does its work."""

    def patched(module, name):
        work = getattr(module, name)

        def stopped(*given, **named):
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
            return work(*given, **named)

        monkeypatch.setattr(module, name, stopped)

    return patched


def wanted(*transports):
    return {"transport": list(transports), "duration": "1s", "seed": 1}


@pytest.mark.parametrize("place", ["made", "say"])
def test_stops_after_a_measurement_do_not_lose_it(tmp_path, monkeypatch, twice, place):
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    twice({"made": measuring, "say": live}[place], place)
    with server() as port, pytest.raises(KeyboardInterrupt):
        live.measure(
            f"127.0.0.1:{port}",
            options=MeasureOptions(**wanted("udp", "tfrc"), out=tmp_path / "out", report=False),
        )
    # Nothing is measured after them.
    assert [folder.name for folder in (tmp_path / "out").iterdir()] == ["udp"]
    flows = talkspurt.load(tmp_path / "out/udp").flows
    assert (flows["received_packets"] > 0).all()


def test_stops_after_a_call_do_not_lose_it(tmp_path, monkeypatch, twice):
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    twice(live, "_keep")
    kept = CallOptions(
        speech=HERE, heard=tmp_path / "here.wav", codec="pcmu", out=tmp_path / "here", quiet=True,
        report=False,
    )  # fmt: skip
    with answering(tmp_path, "--no-report") as (port, _), pytest.raises(KeyboardInterrupt):
        live.call(
            f"127.0.0.1:{port}", options=kept, transport="udp", duration="1s", mtu=1500, seed=1
        )
    assert (tmp_path / "here.wav").stat().st_size > 1000
    assert talkspurt.load(tmp_path / "here").flows["name"].to_list() == ["call", "call.reverse"]


@real
def test_stops_after_an_emulation_do_not_lose_it(tmp_path, twice):
    case = put(tmp_path / "case.toml", NETWORK)
    twice(account, "failures")
    with pytest.raises(KeyboardInterrupt):
        emulating.run(
            case,
            [emulating.Wanted("laptop", ("true",), serves=False)],
            None,
            EmulateOptions(duration="1s", out=tmp_path / "out", report=False),
        )
    assert talkspurt.load(tmp_path / "out").manifest["real_time"]["commands"][0]["status"] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["case.toml", "out"]


def test_the_third_stop_ends_what_is_protected():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.undisturbed():
        with interrupts.undisturbed():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        assert interrupts.came()
        done.append("not at the end of the inner block")
        signal.raise_signal(signal.SIGINT)
        done.append("not after the third")
    assert done == ["not at the end of the inner block"]
    assert not interrupts.came()
