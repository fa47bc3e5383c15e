"""The shipped scenarios give the digests written here, on every machine and at every version.

A digest that moves says that some packet moved. If that was meant, write the new one here and a
line in docs/validation/golden.md that says why. That page lists these and all other golden numbers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import talkspurt
from command import process
from talkspurt.scenarios.source import read

ROOT = Path(__file__).parent.parent
SCENARIOS = ROOT / "scenarios"
GOLDEN = {
    "bufferbloat": "6a838ffa8a7f6ec87319fd369d64510d",
    "ccid3": "adb7650df25b54fd5cd2751930815146",
    "controllers": "05b076d4074d9652175e6062ee0223e1",  # of a study its first combination and seed
    "every-transport": "97d62c196652c30af51ccfd2aba75924",
    "first-call": "40707420fa02772ae51ebf01768718c8",
    "jitter-buffers": "cd9b59c4f4bd22467c2e8e0f418894aa",
    "ladder-heard": "ead1bcee5307739e50e436963c139214",
    "l4s": "cc12d5a2e0c51e8ac6a95b14ea292d6c",
    "large-delay": "dfd9f7888a29a34b6b393877fc1eff75",
    "many": "b646607f743cc75b75cb17814d9140da",
    "multistreaming": "3c87ab188d922d0a4b0fd8a88fb6a393",
    "partial-reliability": "cb854730b120eba03b849462add9b369",
    "queues": "e8a225087a52c0c5fb1f836d4ed672bf",
    "sources": "1f506df4c5962f9681b75c6551c96805",
    "sfu-bursts": "c0eb6c5692edd5f4ce082cd716127c72",
    "today": "e0b9ea8fbc2832781a2713ab88de10b7",
    "two-paths": "9e0266dcb8305aba33f42a0646652d37",
    "two-way": "d908f8387d9ffe24753dc7dfd2a3f4e9",
    "video": "e56f5f8f1e7b632a748012efd33a5b8c",
    "which-transport": "b839de0cd89bf60ec6fb596e3a27a682",
    "wireless-cell": "e5e07932dbe36c14a0b23e2d92988fb1",
}

DESIGNED = {"sensitivity": "3028b9300f0cc90268ac8bedfb657d8d"}
"""Of a study with a design its first point: the sample is the same on every machine."""

MACHINE_DEPENDENT = ("opus-repair",)
"""Packets depend on floating-point arithmetic: no digest holds on every machine."""

CONTROLLERS = {
    "UDP": "05b076d4074d9652175e6062ee0223e1",
    "TCP Tahoe": "d18b614be95adb4129ab8e903f5fdf64",
    "TCP Reno": "4b8e34eb94b51bcdd94b6139c7cb500e",
    "TCP NewReno": "d390f1ce64007daccd1d134a52e80285",
    "TCP SACK": "9320d5248b9690f574fbaa16874c67b0",
    "TCP CUBIC": "57b847e27e8f94d805caa2903f5c309f",
    "TCP BBR": "29327b97aec7dbc33b29da8e2b8ecaed",
    "SCTP": "8995e36622115ad7af4443b9c4f509b8",
    "SCTP unordered": "9e272b9e621a6729db0a05bbb34a4d93",
    "SCTP partial": "df0bd58abf4c329693cfaf66297e79f0",
    "DCCP CCID 2": "95af4c14ff8c110f982d297a4e7a3e9f",
    "DCCP CCID 3": "66c75832c9a5c64a0b1c22d464a6ff4c",
    "DCCP CCID 4": "6192613830c71aacc32b0a1cf6afa9f5",
    "TFRC": "8cac116443eea40ae739c6cbca3b078f",
    "TFRC-TB": "2ffb67487d57a03ede70d51675213903",
    "Beritelli": "4bb2db974678974276be03579b785ae5",
}
"""Each value of the axis of ``controllers``, under its first seed."""
QUEUES = {
    "DropTail 100": "e8a225087a52c0c5fb1f836d4ed672bf",
    "DropTail 10": "7737873d6048c781e6cd2e55ee8ffd95",
    "RED": "8526541d4e644025e53fe597d986d6a8",
    "Adaptive RED": "8c7f51ff8070aafb3236398dcba1e788",
    "CoDel": "bedd4faf2f91ac9440e711220caef0ca",
    "CoDel, ECN": "3ba8d829035bc39048d131b4272c4a13",
    "PIE": "bc0fb6810422d50f3afd0a210d1b54b3",
    "FQ-CoDel": "92ee56c8d19fd6118d17289b4b0d61ed",
    "Priority": "a7dd567c6d602bc754b8bd31ba78535a",
    "Policed priority": "a7dd567c6d602bc754b8bd31ba78535a",
    "Shaped DropTail": "fab6f718c9c552059e77c933989266a2",
    "Shaped FQ-CoDel": "75d493cf5680e8f0ed2a340ae0a0cbfc",
}
"""And of ``queues``."""


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_shipped_scenario_has_its_digest(name: str) -> None:
    file = SCENARIOS / f"{name}.toml"
    text = file.read_text(encoding="utf-8")
    one = {"axes": [], "replications.count": 1} if "[[axes]]" in text else {}
    result = talkspurt.run(file, set=one)
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


def rows() -> dict[str, list[str]]:
    """The cells of the page by each name in back quotes in the first one."""
    page = (ROOT / "docs" / "validation" / "golden.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line[:3] == "| `"]
    return {name: row[1:] for row in cells for name in re.findall(r"`([^`]+)`", row[0])}


def stored() -> set[str]:
    """Files with stored values: digests, texts, limits, and data that tests include."""
    command = ["git", "ls-files", "tests", "crates", "benches", "docs"]
    listed = process(*command, cwd=ROOT)
    if listed.returncode:
        pytest.skip("no checkout of git")
    wide = r"0x(?:[0-9a-f]{4}_){3}[0-9a-f]{4}"
    marks = re.compile(rf"[\"`][0-9a-f]{{32}}[\"`]|include_(?:str|bytes)!|{wide}, {wide}")
    found = set()
    for name in set(listed.stdout.splitlines()) - {"tests/test_golden.py"}:
        file = Path(name)
        read = "tests" in file.parts and file.suffix in (".rs", ".py")
        read = read or name == "docs/performance.md"
        if file.suffix == ".snap":
            found.add(str(file.parent))
        if "golden" in file.parts or name == "benches/limits.toml":
            found.add(name)
        if read and marks.search((ROOT / file).read_text(encoding="utf-8")):
            found.add(name)
    return found


def test_every_golden_number_is_on_the_page_with_what_confirms_it() -> None:
    found = rows()
    digests = {*GOLDEN, *DESIGNED, *CONTROLLERS, *QUEUES}
    assert set(found) == digests | stored() | {"tests/test_ns2.py"}
    assert all(all(cells) for cells in found.values())


def test_every_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "validation" / "golden.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|crates)/[\w./-]+\.\w+)::(\w+)`", page)
    assert len(named) > 20
    for file, test in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"\b(def|fn) {test}\(", text), f"{file} has no {test}"
