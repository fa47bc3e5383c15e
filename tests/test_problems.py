"""Words of the field that a scenario cannot have get an answer that names what it can have."""

import itertools
import json
import tomllib

import pytest

import talkspurt as package
from command import talkspurt
from conftest import SCENARIO
from talkspurt import _core
from talkspurt._text import problems

ROWS = [(words, nearest) for words, nearest, _ in problems.NOT_YET] + list(problems.OTHER_NAMES)
WORDS = [word for words, _ in ROWS for word in words.split()]
PLACES = {
    "codec": "flows.call.source",
    **dict.fromkeys(("transport", "source", "playout"), "flows.call"),
    **dict.fromkeys(("controller", "recovery"), "flows.tcp-call.transport"),
    **dict.fromkeys(("queue", "delay", "jitter", "rate", "loss"), "links.sky"),
}
"""Where the first key of an alternative belongs in the scenario of the tests."""


def hints(folder, **changes):
    with pytest.raises(package.ScenarioError) as error:
        package.read(folder / "small.toml", set=changes)
    return error.value


def word_lists(schema):
    """All words that the scenario's schema permits, and all keys."""
    if isinstance(schema, dict):
        yield from [schema["const"]] if "const" in schema else []
        for key, inner in schema.items():
            if key == "properties":
                yield from inner
            yield from word_lists(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from word_lists(inner)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "flows.call.source.codec",
            "speex",
            'not support speex yet; the nearest is codec = "opus"',
        ),
        ("flows.call.source.codec", "AMR-WB", 'codec = "opus"'),
        ("flows.call.source.codec", "G.722.2", 'codec = "g722"'),
        ("flows.call.transport.kind", "quic", 'transport = { kind = "sctp", ordered = false }'),
        ("flows.call.transport", "quic", 'transport = { kind = "sctp", ordered = false }'),
        ("flows.call.transport", "webrtc", 'controller = { kind = "gcc" }'),
        (
            "flows.tcp-call.transport.controller",
            "googcc",
            'in talkspurt: controller = { kind = "gcc" }',
        ),
        ("flows.tcp-call.transport.controller", "bbr3", 'in talkspurt: controller = "bbr"'),
        ("links.sky.queue.kind", "cake", 'queue.kind = "fq_codel"'),
        ("links.sky.queue.kind", "fq_pie", 'queue.kind = "fq_codel"'),
        ("links.sky.netem", "x", 'in talkspurt: delay = "20ms" or jitter'),
        ("flows.call.l4s", True, 'in talkspurt: queue.kind = "dualpi2"'),
    ],
)
def test_a_word_of_the_field_is_answered(folder, path, value, said):
    error = hints(folder, **{path: value})
    assert any(said in (problem["hint"] or "") for problem in error.problems), error
    assert said in str(error)


def test_the_answer_is_printed_for_a_file_and_for_an_axis(folder, tmp_path):
    text = SCENARIO.replace('codec = "pcmu"', 'codec = "speex"').replace(
        "queue = {", "sfq = true\nqueue = {"
    )
    text += '[[axes]]\npath = "flows.upload.transport.controller"\nvalues = ["cubic", "vegas"]\n'
    (tmp_path / "speech.wav").write_bytes((folder / "speech.wav").read_bytes())
    (tmp_path / "case.toml").write_text(text, encoding="utf-8")
    done = talkspurt("check", "case.toml", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    for word in ("speex", "sfq", "vegas"):
        assert any(f"talkspurt does not support {word} yet" in line for line in lines), lines
    assert all(line.startswith("case.toml:") for line in lines)


def test_other_words_keep_the_hint_of_the_parser(folder):
    error = hints(folder, **{"flows.call.transport.kind": "udpp", "links.sky.dely": "1ms"})
    with pytest.raises(_core.ScenarioError) as parsed:
        sets = [("flows.call.transport.kind", "udpp"), ("links.sky.dely", "1ms")]
        text = (folder / "small.toml").read_text(encoding="utf-8")
        _core.load(text, str(folder / "small.toml"), str(folder), sets, None)
    assert (error.problems, str(error)) == (parsed.value.problems, str(parsed.value))


def test_errors_are_written_as_the_parser_writes_them(folder):
    error = hints(folder, **{"seed": -1, "flows.call.transport.kind": "udpp", "flows.x.y": 1})
    assert "\n".join(map(problems.text, error.problems)) == str(error)


def test_no_word_is_answered_twice_or_is_supported():
    assert len(WORDS) == len(set(WORDS))
    plain = {word.lower().replace("-", "").replace("_", "").replace(".", "")
             for word in word_lists(json.loads(_core.schema())) if isinstance(word, str)}  # fmt: skip
    assert set(WORDS) & plain == set()


@pytest.mark.parametrize("nearest", sorted(set(itertools.chain(*(near for _, near in ROWS)))))
def test_what_is_offered_instead_is_supported(folder, nearest):
    ((key, value),) = tomllib.loads(nearest).items()
    # The values that it also needs are up to the user.
    try:
        package.read(folder / "small.toml", set=[(f"{PLACES[key]}.{key}", value)])
    except package.ScenarioError as error:
        assert not any("unknown" in problem["message"] for problem in error.problems), error
