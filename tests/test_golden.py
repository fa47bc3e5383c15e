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
    "ccid3": "f63768c78a026c7e17eca2f5eef22700",
    "controllers": "65df6df1a32ea74cfdc072b4c58b34d6",  # of a study its first combination and seed
    "every-transport": "e67b36ce90cc7f0df1d2d9e29ad24a0e",
    "first-call": "d14702d70431378a35fcca78e4c200b1",
    "jitter-buffers": "da5af8aa2a74b8b9798fde04b42eef8c",
    "ladder-heard": "bdff6253550a2d1b2e31972ef7c569ab",
    "large-delay": "206e9ee02534ef8fb440fb859e508674",
    "many": "275129af8784e71f1c3625ed4e3a272f",
    "multistreaming": "ea891cf6979644369ebe1ba3f8935162",
    "partial-reliability": "03fd18073dc90d2aec188aabd4ee7c70",
    "queues": "2768c5556f067a772f38ccc02d8d3d8f",
    "sources": "b2a00dc153faad1269455239bad9b41b",
    "two-paths": "99d4eb82f222b1061dd0f28c59caa79c",
    "two-way": "96ae0753ade5e23007168e7fd8417229",
    "video": "55b93b92bc4d765f82b98c2a3868dbf9",
    "which-transport": "277e44c269d74492a1da1f0486e3aa5d",
    "wireless-cell": "5ee7e5246ed0e1fa02d876972868df2e",
}

DESIGNED = {"sensitivity": "e9363216ebf6e5e27d3b643eda81340d"}
"""Of a study with a design its first point: the sample is the same on every machine."""

MACHINE_DEPENDENT = ("opus-repair",)
"""Packets depend on floating-point arithmetic: no digest holds on every machine."""

CONTROLLERS = {
    "UDP": "65df6df1a32ea74cfdc072b4c58b34d6",
    "TCP Tahoe": "17ea9294d831810392ecc549598d91b6",
    "TCP Reno": "408b1a4d8c2fd47805c9c4037691b45a",
    "TCP NewReno": "2d9948d8a8e29d97746adb797d7a33d3",
    "TCP SACK": "31fc9c577679ceb814f903df7b82d61e",
    "TCP CUBIC": "6c02dd73f14aafc2d3ff3eac9ff0c46e",
    "TCP BBR": "c506dc94970bc75ae597de1a402300bf",
    "SCTP": "4b6b6f73f0b68cf8d25c11a794437786",
    "SCTP unordered": "4f7c8e72676449efcdec26e374b173f0",
    "SCTP partial": "7b752d69283be97ee2d8b9ba612877a6",
    "DCCP CCID 2": "59b1e1a4624f1342afce0b25e212ad93",
    "DCCP CCID 3": "75d3e7f7a8f47da18634a4eac45b6ebf",
    "DCCP CCID 4": "fb55fcdbce8fabebf2a39280ed524241",
    "TFRC": "d0d5c05e41551b7af92a265f780098c3",
    "TFRC-TB": "7fc683d2f6cd7bf972c147b2ea046062",
    "Beritelli": "ba69432be369c80cddca3c6271b84bc8",
}
"""Each value of the axis of ``controllers``, under its first seed."""
QUEUES = {
    "DropTail 100": "2768c5556f067a772f38ccc02d8d3d8f",
    "DropTail 10": "aaca2075a462abb6675f403d9ac19064",
    "RED": "43e07fb98d00e80c51b93fed4f623934",
    "Adaptive RED": "a8b7d5d56929a3033dd6706180774f3a",
    "CoDel": "b03b1dd4d5a2f84b14db807ab3679289",
    "CoDel, ECN": "e8df4b4dde70f6df148aede05cd3eb69",
    "PIE": "47e0db61e9d26b19f8dd48ed40251a8b",
    "FQ-CoDel": "be6e364efa942d586f1dc20b68ee609c",
    "Priority": "a743225e2e617dea38831b885422a23d",
    "Policed priority": "a743225e2e617dea38831b885422a23d",
    "Shaped DropTail": "42887ffeb6972006c6ca8efddc57cbb6",
    "Shaped FQ-CoDel": "7718eb72f226d3f134c31fbec1542902",
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
