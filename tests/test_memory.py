"""The memory that runs are estimated to take is what their process takes at most, within a factor
of 1.5, and is compared with the machine's before they start.
"""

import sys
from pathlib import Path

import pytest

import talkspurt
from command import output, succeed, told
from talkspurt.errors import BadInputError, MemoryWarning
from talkspurt.runs import memory
from talkspurt.scenarios.source import read
from texts import put

RECORDING = Path(__file__).parent.parent / "speech" / "english-man.wav"
LINK = """
[links.{name}]
from = "{start}"
to = "{end}"
rate = "200Mbit/s"
delay = "3ms"
queue = {{ kind = "droptail", packets = 500 }}
"""
FLOW = """
[flows.{name}]
from = "{start}"
to = "{end}"
count = {count}
transport = {transport}
source = {source}
"""
SPEECH = '{ kind = "speech", codec = "g729a", packet = "40ms" }'
HEARD = f'{{ kind = "speech", codec = "g722", file = "{RECORDING}", repeat = true }}'
UDP, DCCP = '{ kind = "udp" }', '{ kind = "dccp", ccid = 2 }'


def scenario(parts, duration="2s"):
    return f'title = "Large"\nduration = "{duration}"\n' + "".join(parts)


def star(leaves, calls):
    """Calls from every leaf to a centre, each over a link of its own."""
    for i in range(leaves):
        yield LINK.format(name=f"l{i}", start=f"leaf{i}", end="centre")
        yield FLOW.format(
            name=f"f{i}", start=f"leaf{i}", end="centre", count=calls, transport=UDP, source=SPEECH
        )


def shared(count, transport, source=SPEECH):
    """Flows over one path of two links."""
    yield LINK.format(name="a", start="west", end="middle")
    yield LINK.format(name="b", start="middle", end="east")
    yield FLOW.format(
        name="f", start="west", end="east", count=count, transport=transport, source=source
    )


ALONE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A child of this process starts with its size, which counts: one of a small process does not."""


def peak(*words):
    """Bytes that a command takes at most."""
    command = [sys.executable, "-m", "talkspurt", "run", *words, "--json", "--no-report"]
    return 1024 * int(output(sys.executable, "-c", ALONE, *command))


LARGE = {
    "star": scenario(star(1500, 1)),
    "groups": scenario(star(30, 150)),
    "mixed": scenario(shared(2500, DCCP)),
    "tcp": scenario(shared(6000, '{ kind = "tcp", controller = "newreno" }', '{ kind = "bulk" }'), "200ms"),
    "long": scenario(shared(60, UDP), "20min"),
    "heard": scenario(shared(15, UDP, HEARD), "50s"),
    "runs": scenario(shared(1, UDP), "500ms") + "\n[replications]\ncount = 2000\n",
}  # fmt: skip


@pytest.mark.parametrize("tables", ["none", "folder"])
@pytest.mark.parametrize("name", LARGE)
def test_the_estimate_is_what_the_process_takes(name, tables, tmp_path):
    file = put(tmp_path / "s.toml", LARGE[name])
    plan = read(file).plan
    need = memory.estimate(plan, range(len(plan)), jobs=1, tables=tables, heard=tables != "none")
    out = ("--out", tmp_path / "out") if tables == "folder" else ()
    found = peak(file, "--jobs", "1", *out)
    assert 1 / 1.5 < need / found < 1.5, (need, found)
    if tables == "folder":
        # It tells more than that a program was started.
        assert found > 1.15 * memory.PROGRAM


def test_what_the_machine_has_not_is_refused_before_it_starts(tmp_path, monkeypatch):
    file = put(tmp_path / "s.toml", scenario(shared(130_000, UDP), "1h"))
    monkeypatch.setattr(memory, "machine", lambda: 4e9)
    with pytest.raises(
        BadInputError, match=r"about \d[.\d]* GB, and this machine has 4 GB; simulate fewer"
    ):
        talkspurt.run(file, set={"record.interval": "30min"})


def test_a_limit_of_the_user_counts_in_place_of_the_machines(tmp_path, monkeypatch):
    file = put(tmp_path / "s.toml", scenario(shared(1, UDP), "100ms"))
    assert "and --memory-limit permits 40 MB; simulate fewer" in told(
        "run", file, "--json", "--memory-limit", "0.04"
    )
    assert "--memory-limit 0: expected GB" in told("run", file, "--memory-limit", "0")
    monkeypatch.setattr(memory, "machine", lambda: 40e6)
    with pytest.raises(BadInputError):
        talkspurt.run(file)
    with pytest.warns(MemoryWarning, match="this takes about"):
        talkspurt.run(file, memory_limit=1.2 * memory.PROGRAM)
    talkspurt.run(file, memory_limit=1e9)


def test_most_of_the_limit_is_told(tmp_path):
    file = put(tmp_path / "s.toml", scenario(shared(1, UDP), "100ms"))
    done = succeed("run", file, "--json", "--memory-limit", "0.07")
    assert done.stderr.startswith("talkspurt: memory: this takes about ")
    assert not succeed("run", file, "--json", "--memory-limit", "1").stderr


def test_the_machine_has_memory():
    assert 1e8 < memory.machine() < 1e14
