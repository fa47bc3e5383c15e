"""The hook that makes the gallery, and tables and sounds of other pages."""

import importlib.util
import re
import tomllib
import wave
from io import BytesIO
from pathlib import Path

import pytest

import talkspurt
from texts import put

pytest.importorskip("mkdocs")
ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
gallery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gallery)


def test_every_mark_of_a_page_is_known_and_used():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    marks = {mark for text in pages for mark in re.findall(r"<!-- made: (\w+) -->", text)}
    assert marks == set(gallery.TABLES)


def test_a_mark_becomes_its_table():
    text = "before\n\n<!-- made: synonyms -->\nold\n<!-- / -->\n\nafter"
    new = gallery.filled(text)
    assert new.startswith("before\n\n<!-- made: synonyms -->\n\n| word | in talkspurt |\n")
    assert '| g711a, g711alaw, alaw | `codec = "pcma"` |' in new
    assert new.endswith("<!-- / -->\n\nafter") and "old" not in new
    assert gallery.filled(new) == new


def test_the_words_of_the_glossary_are_those_of_the_program():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert gallery.filled(page) == page, "`make pages` writes it"


def test_the_excerpt_of_a_call_is_where_most_is_missing():
    result = talkspurt.run(ROOT / "scenarios" / "first-call.toml")
    frames = result.frames("call-over-tcp")
    begins = gallery.worst(result, "call-over-tcp") + frames["playout_s"].min()

    def played(start: float) -> int:
        heard = frames.filter(frames["fate"] == "played")["playout_s"]
        return heard.is_between(start, start + gallery.SECONDS).sum()

    # The call pauses when the upload begins: a whole excerpt has 400 frames of 20 ms.
    assert played(begins) <= 1.02 * min(played(start) for start in range(2, 50))
    assert played(begins) < 390
    assert begins + gallery.SECONDS > 15.0
    with wave.open(BytesIO(gallery.excerpt(result, "call-over-tcp", 3.0))) as sound:
        assert sound.getnframes() == gallery.SECONDS * sound.getframerate()


def test_a_large_study_is_one_run_and_says_so(tmp_path):
    text = (ROOT / "scenarios/questions/ssthresh.toml").read_text(encoding="utf-8")
    file = put(tmp_path / "large.toml", text)
    lines: list[str] = []
    made = dict(gallery.entry(file, "talkspurt run scenarios/large.toml", None, lines))
    assert made["images/gallery/scenarios-large.png"].startswith(b"\x89PNG")
    page = "\n".join(lines)
    assert f"### {tomllib.loads(text)['title']} {{ #scenarios-large }}\n" in page
    small = made["images/thumbnails/scenarios-large.png"]
    assert small.startswith(b"\x89PNG") and len(small) < 20_000
    assert "Run here: one of 1044 combinations." in page
