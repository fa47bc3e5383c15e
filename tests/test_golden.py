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
    "ccid3": "",
    "controllers": "",  # of a study its first combination and seed
    "first-call": "e6eb751fc514d8584ed03f4cc42cd49f",
    "large-delay": "",
    "two-way": "96ae0753ade5e23007168e7fd8417229",
    "which-transport": "277e44c269d74492a1da1f0486e3aa5d",
}


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
