"""Links from pages to the playground, below each command that runs a scenario which it has."""

from __future__ import annotations

import base64
import json
import re
import shlex
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "python" / "talkspurt" / "templates"
BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
LEFT_OUT = {"sensitivity"}
"""Scenarios that a page cannot run: designs."""


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Add the links. Blocks of a scenario that a page builds follow each other."""
    up = "../" * page.file.url.count("/")
    written: dict[str, str] = {}

    def linked(block: re.Match[str]) -> str:
        kind, title, text = block["kind"], block["title"], block["text"]
        if kind == "toml" and title:
            begins = text.startswith("title =")
            written[title] = text if begins else f"{written.get(title, '')}\n{text}"
        lines = text.splitlines() if kind == "sh" else []
        found = [address for line in lines if (address := address_of(line, written))]
        return "\n\n".join([block[0], *(anchor(up + it) for it in found[-1:])])

    return BLOCK.sub(linked, markdown)


def anchor(address: str) -> str:
    """A link to the playground."""
    return f'<p class="play"><a href="{address}">Open in the playground</a></p>'


def address_of(command: str, written: Mapping[str, str]) -> str | None:
    """The address at which the playground opens the scenario of a command, if it has it."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return None
    if words[:1] != ["talkspurt"] or words[1:2] not in (["run"], ["init"]) or len(words) < 3:
        return None
    name, options = words[2] + ".toml" * (words[1] == "init"), words[3:]
    sets = [options[at + 1].split("=", 1) for at, it in enumerate(options) if it == "--set"]
    if name in written:
        return f"playground/index.html#s={shared(name, written[name], sets)}"
    path = name if name.startswith("scenarios/") else f"templates/{name}"
    file = ROOT / name if name.startswith("scenarios/") else TEMPLATES / name
    if not file.is_file() or file.stem in LEFT_OUT:
        return None
    asked = [("open", path), *(("set", "=".join(one)) for one in sets)]
    return f"playground/index.html#{urlencode(asked)}"


def shared(name: str, text: str, sets: Sequence[Sequence[str]]) -> str:
    """A scenario as the playground's links have it; templates' recordings are beside it."""
    squeezed = zlib.compressobj(9, wbits=-15)
    document = json.dumps({"path": f"/templates/{name}", "text": text, "sets": sets})
    raw = squeezed.compress(document.encode()) + squeezed.flush()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
