"""Modules of `proto` import only modules of lower layers, as ARCHITECTURE.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "crates" / "proto" / "src"
LAYERS = (
    (
        "math",
        "metric",
        "time",
        "units",
        "rng",
        "seq",
        "packet",
        "gauge",
        "octets",
        "prefetch",
        "profile",
        "validate",
    ),
    ("rtp", "rtcp", "frame", "rfc4571"),
    ("endpoint", "transport"),
    ("rtt", "congestion", "rate"),
    ("udp", "tcp", "dccp", "sctp", "tfrc", "external"),
    ("body",),
    ("wire",),
    ("probe",),
)
LAYER = {module: height for height, layer in enumerate(LAYERS) for module in layer}


def imports() -> set[tuple[str, str]]:
    """Which top-level module names which other, tests and documentation apart."""
    found = set()
    for file in SOURCES.rglob("*.rs"):
        module = file.relative_to(SOURCES).parts[0].removesuffix(".rs")
        if module == "lib" or file.stem.endswith("_tests"):
            continue
        text = file.read_text().split("#[cfg(test)]")[0]
        text = re.sub(r"//.*", "", text)
        named = set(re.findall(r"\bcrate::([a-z0-9_]+)", text))
        for group in re.findall(r"\bcrate::\{([^}]*)\}", text):
            named |= set(re.findall(r"[a-z0-9_]+", group)) & LAYER.keys()
        found |= {(module, other) for other in named if other != module}
    return found


def test_every_module_has_a_layer() -> None:
    """A new module is entered here and in ARCHITECTURE.md."""
    modules = {path.name.removesuffix(".rs") for path in SOURCES.iterdir()} - {"lib"}
    assert modules == LAYER.keys()


def test_no_module_imports_a_higher_layer() -> None:
    """So there are no cycles among protocols, packets and wire formats."""
    upward = {(a, b) for a, b in imports() if LAYER[b] > LAYER[a]}
    assert not upward


def test_protocols_do_not_name_each_other() -> None:
    """UDP's header is the one below TFRC, and DCCP and SCTP inside UDP."""
    protocols = {"udp", "tcp", "dccp", "sctp", "tfrc", "external"}
    named = {(a, b) for a, b in imports() if a in protocols and b in protocols}
    assert {(a, b) for a, b in named if b != "udp"} == set()
    assert {a for a, _ in named} <= {"dccp", "sctp", "tfrc"}
