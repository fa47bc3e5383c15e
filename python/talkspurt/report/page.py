"""Page generation: templates, style sheet, scripts and the vendored plotting library."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from talkspurt import _core
from talkspurt._text.escaping import visible, visible_in
from talkspurt._text.format import VERDICTS, rate_text, time_text, verdict
from talkspurt.metrics.catalogue import column

WEB = files("talkspurt") / "web"
STYLES = ("vendor/uPlot.min.css", "report.css", "charts.css", "topology.css", "animation.css")
COMPILED = Path(__file__).parent / "__pycache__"
"""The folder of the compiled templates: to compile them takes as long as to simulate half a minute
of a busy link."""
SCRIPTS = ("charts.js", "contents.js")
HEADING = re.compile(r'<section id="([^"]+)">\s*<h2>(.*?)</h2>')


def asset(name: str) -> str:
    """A file of ``web/`` as text."""
    return (WEB / name).read_text(encoding="utf-8")


class Compiled(FileSystemBytecodeCache):
    """Templates that are compiled again if their file is damaged or cannot be written."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template; none if there is no such file, or a damaged one."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, UnpicklingError, ValueError, AttributeError, ImportError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a template, if there is space for it."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def compiled() -> Compiled | None:
    """The templates compiled before; None where Python writes no compiled modules either."""
    there = COMPILED.is_dir() and os.access(COMPILED, os.W_OK)
    return Compiled(str(COMPILED)) if there and not sys.dont_write_bytecode else None


@cache
def environment() -> Environment:
    """The template environment with its shared functions."""
    found = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        # No bidi control characters.
        finalize=lambda it: visible(it, lines=True) if type(it) is str else it,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=compiled(),
    )
    found.policies["json.dumps_function"] = lambda it, **how: json.dumps(visible_in(it), **how)
    found.globals.update(
        column=column,
        verdict=verdict,
        rate_text=rate_text,
        time_text=time_text,
        contents=_contents,
    )
    return found


def _contents(body: Markup) -> list[tuple[str, Markup]]:
    """The id and the title of each section of a page."""
    return [(anchor, Markup(words)) for anchor, words in HEADING.findall(body)]


def render(template: str, **values: Any) -> str:
    """A complete page from a template of ``web/``."""
    player = values.get("player")
    scripts = (
        *SCRIPTS,
        *(["player.js"] if player and player.calls else []),
        *(["animation.js"] if getattr(values.get("animation"), "data", None) else []),
    )
    page = (
        environment()
        .get_template(template)
        .render(
            style=Markup("".join(map(asset, STYLES))),
            plotter=Markup(script_safe(asset("vendor/uPlot.iife.min.js"))),
            scripts=[Markup(script_safe(asset(name))) for name in scripts],
            version=_core.version(),
            verdicts=VERDICTS,
            **{"player": None, "animation": None, **values},
        )
    )
    # Pictures and descriptions are not escaped.
    return visible(page, lines=True)


def script_safe(text: str) -> str:
    """Script text that cannot close its own element."""
    return text.replace("</script", "<\\/script")


def markdown(text: str) -> Markup:
    """A description as HTML: no raw HTML and no images, which could access the network."""
    if not text.strip():
        return Markup("")  # the parser takes as long to import as a chart to draw
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return Markup(parser.render(text))
