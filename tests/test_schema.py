"""The JSON Schema, which editors use, accepts what the loader accepts, by the reference validator."""

import copy
import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

import talkspurt

ROOT = Path(__file__).parents[1]
FOLDERS = ["scenarios", "python/talkspurt/templates", "docs/reference/examples"]
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.toml"))
SCHEMA = json.loads((ROOT / "schema" / "scenario.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def errors(scenario: dict) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(scenario)]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_shipped_scenarios_are_valid(file):
    assert errors(tomllib.loads(file.read_text(encoding="utf-8"))) == []


def test_a_resolved_scenario_is_valid():
    result = talkspurt.run(ROOT / "scenarios/topologies/chain.toml", set={"duration": "2s"})
    assert errors(tomllib.loads(result.scenario)) == []


def test_a_link_needs_its_keys_unless_it_refines_that_of_a_topology():
    file = ROOT / "scenarios" / "topologies" / "wireless-edge.toml"
    refined = tomllib.loads(file.read_text(encoding="utf-8"))
    assert set(refined["links"]["station-3"]) == {"loss"} and errors(refined) == []
    alone = copy.deepcopy(refined)
    del alone["topology"]
    needed = ["'from'", "'to'", "'delay'", "'queue'"]
    assert all(any(key in error for error in errors(alone)) for key in needed)


@pytest.mark.parametrize(
    ("key", "value"),
    [("duration", 5), ("tilte", "x"), ("flows", {"a": {"transport": {"kind": "udpp"}}})],
)
def test_what_the_loader_rejects_for_its_shape_is_invalid(key, value):
    scenario = tomllib.loads((ROOT / "scenarios/first-call.toml").read_text(encoding="utf-8"))
    assert errors({**scenario, key: value})
