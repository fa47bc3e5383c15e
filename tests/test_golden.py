"""The shipped scenarios give the digests written here, on every machine and at every version.

A digest that moves says that some packet moved. If that was meant, write the new one here and a
line in CHANGELOG.md that says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import talkspurt

SCENARIOS = Path(__file__).parent.parent / "scenarios"
GOLDEN = {
    "ccid3": "b6268cdd13636645bbdd35f9164a5eee",
    "controllers": "ebd927b702c3191f0b478a3cefa9f08c",  # of a study its first combination and seed
    "first-call": "e6eb751fc514d8584ed03f4cc42cd49f",
    "large-delay": "587a02118ade40bccf1c01afecb9036c",
    "two-way": "96ae0753ade5e23007168e7fd8417229",
    "which-transport": "277e44c269d74492a1da1f0486e3aa5d",
}


CONTROLLERS = {
    "UDP": "ebd927b702c3191f0b478a3cefa9f08c",
    "TCP NewReno": "278c0bca2c4225fb0c4c905531106b1d",
    "DCCP CCID 2": "ade552ea90db9004a3c4b99f40799436",
    "DCCP CCID 3": "134e7e313fc76d32e5135890ea84c5b5",
    "DCCP CCID 4": "fb02bfaa6e3eff7b6c2bdd335a65405f",
    "TFRC": "28c3c4c329daed85513c4368b181d6fc",
    "TFRC-TB": "eabebddef97d45e31e55de7c30fe531f",
    "Beritelli": "e2b2e51130635e02813475aa438a5d33",
}
"""Each value of the axis of ``controllers``, under its first seed."""
STUDIES = ("controllers", "large-delay", "which-transport")


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_shipped_scenario_has_its_digest(name: str) -> None:
    study = name in STUDIES
    one = {"axes": [], "replications.count": 1} if study else {}
    result = talkspurt.run(SCENARIOS / f"{name}.toml", set=one)
    assert isinstance(result, talkspurt.Result)
    assert result.digest == GOLDEN[name]


def test_every_shipped_scenario_is_here() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.toml")} == set(GOLDEN)


def test_every_controller_has_its_digest() -> None:
    study = talkspurt.run(SCENARIOS / "controllers.toml", set={"replications.count": 1})
    assert {run.settings["transport"]: run.digest for run in study.runs} == CONTROLLERS
