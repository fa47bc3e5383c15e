"""The shipped scenarios give the digests written here, on every machine and at every version.

A digest that moves says that some packet moved. If that was meant, write the new one here and a
line in CHANGELOG.md that says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import talkspurt
from talkspurt.scenario import read

SCENARIOS = Path(__file__).parent.parent / "scenarios"
GOLDEN = {
    "bufferbloat": "b54e109cb931715748bdcd7ab25fdbcb",
    "ccid3": "47f57fd56d740e5e15ac5dc46b99c7f3",
    "controllers": "babc48b45b83c0ec5ad02740e0165ccc",  # of a study its first combination and seed
    "every-transport": "b7e505ea39f41d70763ad81f636a4140",
    "first-call": "d56a2f1a83780c66bae4e9f34618ae82",
    "jitter-buffers": "cd9b59c4f4bd22467c2e8e0f418894aa",
    "ladder-heard": "f55f4e117fbfe62b33a1608ebf3af8ee",
    "large-delay": "dfd9f7888a29a34b6b393877fc1eff75",
    "many": "3fb3e6759f52646e610c40bee749f1bc",
    "multistreaming": "3c87ab188d922d0a4b0fd8a88fb6a393",
    "partial-reliability": "cb854730b120eba03b849462add9b369",
    "queues": "d8b8e0f852d32c8d5273a2608da3c486",
    "sources": "48d107199777b4e736bb97ae7105e000",
    "two-paths": "9e0266dcb8305aba33f42a0646652d37",
    "two-way": "dc0925a24f43570605024eeb0d417375",
    "video": "28bb7127ba97eef7023713f49a6802b2",
    "which-transport": "cfd4f511138230ddca00558121ee2179",
    "wireless-cell": "1eca9726633eb77e470ece9e38346e8a",
}

DESIGNED = {"sensitivity": "3028b9300f0cc90268ac8bedfb657d8d"}
"""Of a study with a design its first point: the sample is the same on every machine."""

MACHINE_DEPENDENT = ("opus-repair",)
"""Packets depend on floating-point arithmetic: no digest holds on every machine."""

CONTROLLERS = {
    "UDP": "babc48b45b83c0ec5ad02740e0165ccc",
    "TCP Tahoe": "63de85c52aeca423f7882c32d9b12aa9",
    "TCP Reno": "ae3bd7ae3983226eba9eb92ca888b7f7",
    "TCP NewReno": "0de4a628f1c9876427c01425f8329e0c",
    "TCP SACK": "bc0703740c3a086fa6f5cdb6c914bbd0",
    "TCP CUBIC": "228c5236d89e0c8c534df795d2eafede",
    "TCP BBR": "a0c697e40625bccdf6f35a07e2ef52b8",
    "SCTP": "af9f15f1eb83b8a287b361d62c456c72",
    "SCTP unordered": "b2d81fcd3919e5b9f2a308fd5c9a0789",
    "SCTP partial": "123766316cb1c7f00a94176c286f5300",
    "DCCP CCID 2": "a788690d6f1d2580a891ec2e901ea39c",
    "DCCP CCID 3": "4d78b6fd2b3639bba28eb131098e302e",
    "DCCP CCID 4": "257bb0333e4a16943ff9a4cd87af0bef",
    "TFRC": "edc549844d7b26ecf234f2068b804eb8",
    "TFRC-TB": "3bfb89cf209abdd79731ed477d3abc37",
    "Beritelli": "4e63d3e869af5dc47d652e5308796c93",
}
"""Each value of the axis of ``controllers``, under its first seed."""
QUEUES = {
    "DropTail 100": "d8b8e0f852d32c8d5273a2608da3c486",
    "DropTail 10": "7a24b90101a4dafca2e5e41baadbce52",
    "RED": "315ef20f8d27620fd4c6575d47112434",
    "Adaptive RED": "7b6ba11232d4538ba78adcaecce4852b",
    "CoDel": "52b26db7349068da546e390c5078b99d",
    "CoDel, ECN": "b62c5928f138d8d24625870e4a14642c",
    "PIE": "151f6fbac01c1afad70ebfed6eecd48f",
    "FQ-CoDel": "4e617bb8ab15712d6bffa9c360254931",
    "Priority": "bad91d8366fc50b08adc7b232be1884d",
    "Policed priority": "bad91d8366fc50b08adc7b232be1884d",
    "Shaped DropTail": "82593b9321cb6d1cc10413b1545e02f0",
    "Shaped FQ-CoDel": "e93c99bb71ae1584ca63a78b2beef433",
}
"""And of ``queues``."""
STUDIES = (
    "controllers",
    "every-transport",
    "jitter-buffers",
    "large-delay",
    "multistreaming",
    "partial-reliability",
    "queues",
    "two-paths",
    "video",
    "which-transport",
    "wireless-cell",
)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_shipped_scenario_has_its_digest(name: str) -> None:
    study = name in STUDIES
    one = {"axes": [], "replications.count": 1} if study else {}
    result = talkspurt.run(SCENARIOS / f"{name}.toml", set=one)
    assert isinstance(result, talkspurt.Result)
    assert result.digest == GOLDEN[name]
    assert result.manifest["machine_dependent"] == []


@pytest.mark.parametrize("name", sorted(DESIGNED))
def test_the_first_point_of_a_shipped_design_has_its_digest(name: str) -> None:
    run = read(SCENARIOS / f"{name}.toml").plan.start(0, None)
    while not run.wait(1):
        pass
    assert run.result().digest == DESIGNED[name]


@pytest.mark.parametrize("name", MACHINE_DEPENDENT)
def test_what_depends_on_the_machine_says_so_and_is_equal_on_one(name: str) -> None:
    one = {"axes": [], "replications.count": 1, "duration": "20s", "measure": {}}
    first, again = (talkspurt.run(SCENARIOS / f"{name}.toml", set=one) for _ in range(2))
    assert isinstance(first, talkspurt.Result)
    assert isinstance(again, talkspurt.Result)
    assert first.digest == again.digest
    assert first.manifest["machine_dependent"] == ["fec", "dred"]


def test_every_shipped_scenario_is_here() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.toml")} == {
        *GOLDEN,
        *DESIGNED,
        *MACHINE_DEPENDENT,
    }


def test_every_controller_has_its_digest() -> None:
    study = talkspurt.run(SCENARIOS / "controllers.toml", set={"replications.count": 1}, study=True)
    assert {run.settings["transport"]: run.digest for run in study.runs} == CONTROLLERS


def test_every_queue_has_its_digest() -> None:
    study = talkspurt.run(SCENARIOS / "queues.toml", set={"replications.count": 1}, study=True)
    assert {run.settings["queue"]: run.digest for run in study.runs} == QUEUES
