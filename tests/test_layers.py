"""Modules of `proto` import only modules of lower layers, as ARCHITECTURE.md lists them; those of
other crates, and of the Python package, import each other in one direction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parent.parent / "crates"
SOURCES = CRATES / "proto" / "src"
LAYERS = """
math metric time units rng seq packet gauge octets prefetch profile validate
rtp rtcp frame rfc4571
endpoint transport
rtt congestion rate media
udp tcp dccp sctp tfrc external
body
wire
probe
"""
LAYER = {name: at for at, layer in enumerate(LAYERS.split("\n")) for name in layer.split()}


def imports(sources: Path = SOURCES) -> set[tuple[str, str]]:
    """Which top-level module names which other, tests and documentation apart."""
    modules = {path.name.removesuffix(".rs") for path in sources.iterdir()} - {"lib"}
    found = set()
    for file in sources.rglob("*.rs"):
        module = file.relative_to(sources).parts[0].removesuffix(".rs")
        if module == "lib" or file.stem.endswith("tests"):
            continue
        text = file.read_text().split("#[cfg(test)]\nmod tests")[0]
        text = re.sub(r"//.*", "", text)
        named = set(re.findall(r"\bcrate::([a-z0-9_]+)", text))
        for group in re.findall(r"\bcrate::\{([^}]*)\}", text):
            named |= set(re.findall(r"[a-z0-9_]+", group))
        found |= {(module, other) for other in named & modules if other != module}
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
    """UDP's header is the one below TFRC and external stacks, and DCCP and SCTP inside UDP."""
    protocols = {"udp", "tcp", "dccp", "sctp", "tfrc", "external"}
    named = {(a, b) for a, b in imports() if a in protocols and b in protocols}
    assert {(a, b) for a, b in named if b != "udp"} == set()
    assert {a for a, _ in named} <= {"dccp", "external", "sctp", "tfrc"}


@pytest.mark.parametrize("crate", sorted(path.name for path in CRATES.iterdir()))
def test_no_modules_import_each_other_in_a_circle(crate: str) -> None:
    """A reader can begin at the bottom; graphlib raises CycleError with the circle."""
    graph: dict[str, set[str]] = {}
    for module, other in imports(CRATES / crate / "src"):
        graph.setdefault(module, set()).add(other)
    TopologicalSorter(graph).prepare()


PACKAGE = CRATES.parent / "python" / "talkspurt"


def of_python() -> dict[str, set[str]]:
    """Which module of the package imports which other, in functions too; those for types apart."""

    def name(file: Path) -> str:
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def named(node: ast.AST) -> Iterator[str]:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.If) and "TYPE_CHECKING" in ast.dump(part.test):
                continue
            if isinstance(part, ast.Import):
                yield from (alias.name for alias in part.names)
            if isinstance(part, ast.ImportFrom) and part.module:
                for alias in part.names:
                    longer = f"{part.module}.{alias.name}"
                    yield longer if longer in files else part.module
            yield from named(part)

    files = {name(file): file for file in PACKAGE.rglob("*.py")}
    return {
        module: {
            other
            for other in named(ast.parse(file.read_text(encoding="utf-8")))
            if other in files and other != module
        }
        for module, file in files.items()
    }


def test_no_modules_of_the_package_import_each_other_in_a_circle() -> None:
    """Imports within functions count, since they only hide a circle."""
    graph = of_python()
    assert len(graph) > 150
    assert "talkspurt.results.result" in graph["talkspurt._storage.reader"]
    TopologicalSorter(graph).prepare()


TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[expect\(.*\)\]\n)?(?:pub\(.*\) )?mod tests \{", re.MULTILINE
)
"""Where the tests of a file begin."""

LIMIT = 130_000
"""Lines of product code as of November 2026; what they do needs no more."""
SINCE = {
    "GCC": 1_900,
    "DualPI2, DCTCP and Prague": 635,
    "transport-wide feedback, header extension, padding and probe clusters": 850,
    "cases of RFC 8867 and RFC 8869: what they measure, their verdicts and pages": 1_710,
    "frames as viewers see them, their sizes by rate, shared screens, coupled sessions": 1_035,
    "imports: repair, cuts, copies, and logs and captures of both ends": 470,
    "evaluations beside a baseline, and with failed seeds": 235,
    "studies that keep only their rows, and a quick start": 215,
    "answers: several measures, sound and picture, recordings of one call": 160,
}
"""Lines that later parts add at most: a part states its own, and does not use what others have left."""


def test_product_code_stays_below_its_limit() -> None:
    """Rust without tests, their rig, benches, peers and what writes the reference; and Python."""
    lines = 0
    for file in CRATES.rglob("src/**/*.rs"):
        # `hostile` and `fuzz` are modules of tests, and the crate `testing` is for tests alone.
        part = file.relative_to(CRATES).as_posix()
        if (
            file.stem.endswith(("tests", "hostile"))
            or part.startswith(("live/src/bin/peer", "scenario/src/bin/schema", "testing/"))
            or "/fuzz" in part
        ):
            continue
        text = file.read_text(encoding="utf-8")
        lines += TESTS.split(text)[0].count("\n")
    lines += sum(file.read_text(encoding="utf-8").count("\n") for file in PACKAGE.rglob("*.py"))
    assert 100_000 < lines <= LIMIT + sum(SINCE.values())
