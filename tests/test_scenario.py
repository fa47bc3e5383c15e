"""Where a scenario comes from: a file, text or a dict; fields set over it; files that are not."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import talkspurt
from conftest import SCENARIO, problems
from talkspurt.scenarios.source import pairs, toml_value

VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_written_as_toml_reads_back_as_itself(value):
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_fields_to_set_come_as_dict_or_as_list():
    assert pairs({"a.b": "20ms", "c": 3, "d": [1, "x"]}) == [
        ("a.b", "20ms"),
        ("c", "3"),
        ("d", '[1, "x"]'),
    ]
    assert pairs(["a.b=20ms", ("c", True), "d = x=y"]) == [
        ("a.b", "20ms"),
        ("c", "true"),
        ("d", "x=y"),
    ]
    assert pairs(None) == []


@pytest.mark.parametrize("bad", ["seed", "=3", " = 3"])
def test_a_field_without_path_or_equals_sign_is_refused(bad):
    with pytest.raises(ValueError, match="PATH=VALUE"):
        pairs([bad])


def test_one_string_is_not_a_list_of_fields():
    with pytest.raises(TypeError, match="dict or a list"):
        pairs("seed=3")


def test_file_text_and_dict_ask_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    digests = {
        talkspurt.run(given).digest
        for given in ("small.toml", folder / "small.toml", SCENARIO, tomllib.loads(SCENARIO))
    }
    assert len(digests) == 1


def test_a_missing_file_names_the_nearest(folder):
    with pytest.raises(FileNotFoundError, match=r"did you mean .*small\.toml"):
        talkspurt.read(folder / "smal.toml")


def test_a_missing_folder_is_said_to_be_missing(folder):
    with pytest.raises(FileNotFoundError, match="folder"):
        talkspurt.read(folder / "nowhere" / "small.toml")


def test_a_folder_is_no_scenario(folder):
    with pytest.raises(IsADirectoryError, match="folder"):
        talkspurt.read(folder)


def test_bytes_that_are_no_text_are_a_fault_with_a_line(tmp_path):
    file = tmp_path / "x.toml"
    file.write_bytes(b'title = "x"\nduration = "\xff"\n')
    assert problems(talkspurt.read, file)[0]["line"] == 2


def test_every_fault_is_reported_at_once_with_its_line(folder):
    text = SCENARIO.replace('rate = "256kbit/s"', 'rate = "256ms"').replace(
        'delay = "120ms"', 'dellay = "120ms"'
    )
    found = problems(talkspurt.read, text)
    lines = text.splitlines()
    by_path = {problem["path"]: problem for problem in found}
    assert "256ms" in lines[by_path["links.sky.rate"]["line"] - 1]
    unknown = next(p for p in found if "dellay" in p["path"] + p["message"])
    assert "delay" in (unknown["hint"] or "")
    assert "dellay" in lines[unknown["line"] - 1]
