"""The pages of docs/questions say what was asserted, and the closed form of one is near ns-2."""

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
    for name in ("common", "made", "ssthresh_law"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_names_its_studies_and_a_commit_that_has_all(file):
    text = file.read_text(encoding="utf-8")
    studies = [f"scenarios/questions/{one.name}" for one in SCENARIOS]
    assert any(study in text for study in studies)
    assert "in no commit" not in text
    for figure in (part.split(")")[0] for part in text.split("](")[1:]):
        assert figure.startswith("..") or (file.parent / figure).exists()


def test_a_page_is_not_written_with_a_sentence_that_does_not_hold():
    from common import Page, UntrueError

    page = Page("nothing", "Nothing", "Is it so?")
    page.claim("It is so.", 2 > 1)
    page.claims_list(("So it is.", True))
    assert page.claims == 2
    with pytest.raises(UntrueError, match=r"2 of 2.*It is not"):
        page.claim("It is not.", True, 1 > 2)
    with pytest.raises(UntrueError, match="nothing was given"):
        page.claim("Believe me.")
    with pytest.raises(UntrueError):
        page.claims_list(("Nor this.", False))


def test_differences_are_taken_seed_by_seed():
    from common import paired

    rows = pl.DataFrame(
        {
            "over": ["a", "a", "a", "b", "b", "b"],
            "replicate": [0, 1, 2, 2, 1, 0],
            "mos": [1.0, 2.0, 3.0, 3.5, 2.5, 1.5],
        }
    )
    (found,) = paired(rows, "over", "a", "mos").values()
    assert (found.mean, found.low, found.high, found.count) == (0.5, 0.5, 0.5, 3)
    assert found.differs
    with pytest.raises(AssertionError, match="another axis"):
        paired(pl.concat([rows, rows]), "over", "a", "mos")


# ns-2.35 on 604 ms there and back, 50 packets a second, in bins of half a second;
# tests/test_ns2.py has these times from ns-2 itself.
@pytest.mark.parametrize(
    ("threshold", "seconds"), [(20, 20.5), (50, 6.0), (100, 5.0), (150, 5.0), (200, 5.0)]
)
def test_the_closed_form_is_near_what_ns2_takes(threshold, seconds):
    from ssthresh_law import Path as Way
    from ssthresh_law import keeps_all_s

    found = keeps_all_s(Way(50.0, 0.604, "ns2"), threshold)
    assert found == pytest.approx(seconds, rel=0.1, abs=0.5)


def test_a_closed_form_has_no_step_where_slow_start_is_left_alone():
    from ssthresh_law import NONE, drops_stale_s, keeps_all_s
    from ssthresh_law import Path as Way

    for form in (keeps_all_s, drops_stale_s):
        for profile in ("rfc", "ns2"):
            way = Way(50.0, 0.6, profile)
            times = [form(way, s) for s in range(2, 400)]
            steps = [abs(b - a) for a, b in pairwise(times)]
            assert max(steps) < 2 * way.rtt_s
            assert times[-1] == pytest.approx(form(way, NONE), abs=0.1)
