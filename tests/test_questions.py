"""The pages of docs/questions say what was asserted, and the closed form of one is near ns-2.

No study is run: the measures of the runs are stored in validation/questions.
"""

import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[1]
SCENARIOS = sorted((ROOT / "scenarios" / "questions").glob("*.toml"))
PAGES = sorted((ROOT / "docs" / "questions").glob("*.md"))


@pytest.fixture(autouse=True)
def validation(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "validation" / "questions"))
    monkeypatch.syspath_prepend(str(ROOT / "validation"))
    yield
    for name in ("made", "measures", "page", "rows", *(file.stem for file in PAGES)):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_names_its_studies_and_a_commit_that_has_all(file):
    text = file.read_text(encoding="utf-8")
    studies = [f"scenarios/questions/{one.name}" for one in SCENARIOS]
    assert any(study in text for study in studies)
    assert "in no commit" not in text
    for figure in (part.split(")")[0] for part in text.split("](")[1:]):
        assert figure.startswith("..") or (file.parent / figure).exists()


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_is_what_its_text_and_the_stored_measures_give(file):
    from page import page

    text, conditions = page(file.stem)
    assert text == file.read_text(encoding="utf-8")
    assert conditions > 20


def test_a_page_is_not_written_with_a_sentence_that_does_not_hold():
    from page import UntrueError, write

    names = {"two": 2, "rows": {"a": 1.25, "b": -1.5}}
    true = (
        "? two > 1\n? two <\n  3\nIt is {two:.1f}.\n\n? two == 2\n* So it is.\n* No number: {two}."
    )
    assert write(true, names) == ("It is 2.0.\n\n* So it is.\n* No number: 2.\n", 3)
    table = "| | ms |\n| {each rows} | {row:+.0f*1e3} |"
    assert write(table, names) == ("| | ms |\n| a | +1250 |\n| b | −1500 |\n", 0)
    with pytest.raises(UntrueError, match="condition fails: 1 > two: It is not"):
        write("? two > 1\n? 1 > two\nIt is not.", names)
    with pytest.raises(UntrueError, match="no condition: Believe me"):
        write("Believe me: {two:.0f}.", names)
    with pytest.raises(UntrueError, match="no condition"):
        write("? two > 1\n* So it is.\n* And {two:.0f}.", names)
    with pytest.raises(UntrueError, match="without a statement"):
        write("? two > 1", names)


def test_differences_are_taken_seed_by_seed():
    from rows import Rows

    frame = pl.DataFrame(
        {
            "over": ["a", "a", "a", "b", "b", "b"],
            "replicate": [0, 1, 2, 2, 1, 0],
            "mos": [1.0, 2.0, 3.0, 3.5, 2.5, 1.5],
        }
    )
    a, b = Rows(frame).each("over").values()
    found = (b - a).mos
    assert (found.mean, found.low, found.high, found.count) == (0.5, 0.5, 0.5, 3)
    assert found.differs
    assert f"{found:+.1f}" == "+0.5 [+0.5, +0.5]"
    twice = Rows(pl.concat([frame, frame]))
    with pytest.raises(AssertionError, match="another axis"):
        _ = (twice(over="b") - twice(over="a")).mos
    pooled = Rows(pl.concat([frame, frame.with_columns(pl.col("mos") + 1)]), pooled=True)
    assert (pooled(over="b") - a).seeds("mos") == {0: 1.0, 1: 1.0, 2: 1.0}


# ns-2.35 on 604 ms there and back, 50 packets a second, in bins of half a second;
# tests/test_ns2.py has these times from ns-2 itself.
@pytest.mark.parametrize(
    ("threshold", "seconds"), [(20, 20.5), (50, 6.0), (100, 5.0), (150, 5.0), (200, 5.0)]
)
def test_the_closed_form_is_near_what_ns2_takes(threshold, seconds):
    from ssthresh import Path as Way
    from ssthresh import keeps_all_s

    found = keeps_all_s(Way(50.0, 0.604, "ns2"), threshold)
    assert found == pytest.approx(seconds, rel=0.1, abs=0.5)


def test_a_closed_form_has_no_step_where_slow_start_is_left_alone():
    from ssthresh import NONE, drops_stale_s, keeps_all_s
    from ssthresh import Path as Way

    for form in (keeps_all_s, drops_stale_s):
        for profile in ("rfc", "ns2"):
            way = Way(50.0, 0.6, profile)
            times = [form(way, s) for s in range(2, 400)]
            steps = [abs(b - a) for a, b in pairwise(times)]
            assert max(steps) < 2 * way.rtt_s
            assert times[-1] == pytest.approx(form(way, NONE), abs=0.1)
