"""Links from the documentation to the playground."""

import base64
import json
import re
import sys
import tomllib
import zlib
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest

import talkspurt

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "playground")]

import build  # noqa: E402
import play  # noqa: E402

KNOWN = {one["path"]: one["text"] for one in build.scenarios()}


def links(name):
    """The parameters of each link that a page gets."""
    page = SimpleNamespace(file=SimpleNamespace(url=name.replace(".md", ".html")))
    made = play.on_page_markdown((ROOT / "docs" / name).read_text(encoding="utf-8"), page)
    found = re.findall(r'<p class="play"><a href="((?:\.\./)*)playground/index.html#(.*?)"', made)
    assert {up for up, _ in found} <= {"../" * name.count("/")}
    return [parse_qs(asked) for _, asked in found]


def shared(asked):
    text = asked["s"][0]
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return json.loads(zlib.decompress(raw, wbits=-15))


def test_the_tutorial_opens_as_far_as_it_has_come(tmp_path):
    own = [shared(one) for one in links("tutorial.md") if "s" in one]
    assert len(own) >= 4
    sizes = [len(one["text"]) for one in own]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    assert own[-1]["sets"] == [["links.access.queue", '{kind="fq_codel"}']]
    speech = (ROOT / "speech" / "sense-and-sensibility.wav").read_bytes()
    (tmp_path / "sense-and-sensibility.wav").write_bytes(speech)
    for one in own:
        file = tmp_path / "my-link.toml"
        file.write_text(one["text"], encoding="utf-8")
        assert talkspurt.scenarios.source.read(file, set=dict(one["sets"])).plan


@pytest.mark.parametrize("page", ["teaching.md", "how-to/choose-a-queue.md"])
def test_named_scenarios_are_in_the_playground(page):
    found = links(page)
    assert found
    for one in found:
        if "open" in one:
            assert f"/{one['open'][0]}" in KNOWN


def test_every_scenario_of_the_gallery_has_a_link():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    commands = re.findall(r"`(talkspurt (?:run|init) [^`]+)`", text)
    assert len(commands) > 40
    addresses = {it: play.address_of(it, {}) for it in commands}
    without = [it for it, address in addresses.items() if address is None]
    assert without == ["talkspurt run scenarios/sensitivity.toml"]
    there = [parse_qs(it.partition("#")[2])["open"][0] for it in addresses.values() if it]
    assert [it for it in there if f"/{it}" not in KNOWN] == []
    assert tomllib.loads(KNOWN["/scenarios/networks/lte.toml"])["title"]
