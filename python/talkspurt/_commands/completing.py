"""Words that a shell completes: metrics, and axes, flows and links of the result before them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt._text.escaping import visible

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext


def metrics(_: CompletionContext) -> dict[str, str]:
    from talkspurt.metrics.catalogue import ALL, metric

    return {one.name if metric(one.name) is one else one.full_name: one.label for one in ALL}


def plotted(context: CompletionContext) -> dict[str, str]:
    """What can be plotted of a result: metrics, and of a single run the figures of its report."""
    from talkspurt import figures

    manifest = _manifest(context)
    kinds = {} if manifest.get("kind") == "study" else figures.KINDS
    return {name: kind.title for name, kind in kinds.items()} | metrics(context)


def axes(context: CompletionContext) -> list[str]:
    manifest = _manifest(context)
    named = (visible(str(axis.get("name"))) for axis in manifest.get("axes", ()))
    return list(dict.fromkeys([*named, *OF_FIGURES]))


OF_FIGURES = ("flow", "link", "transport", "source", "time")
"""The axes that every figure may have."""


def flows(context: CompletionContext) -> list[str]:
    return list(dict.fromkeys(_names(context, "flows")))


def links(context: CompletionContext) -> list[str]:
    return list(dict.fromkeys(_names(context, "links")))


def _result(context: CompletionContext) -> Path:
    """The folder that was typed."""
    given = context.get("run")
    return Path((given.raw if given else None) or ".")


def _manifest(context: CompletionContext) -> dict[str, Any]:
    from talkspurt._storage.output_folder import manifest_of

    return manifest_of(_result(context)) or {}


def _names(context: CompletionContext, kind: str) -> Iterator[str]:
    from talkspurt._storage.file_access import read_json

    folder = _result(context)
    for file in (folder / "topology.json", *sorted(folder.glob("runs/*/topology.json"))[:1]):
        # A shell expects words, not errors.
        with contextlib.suppress(OSError, KeyError, TypeError):
            found: Any = read_json(file)
            yield from (visible(str(one["name"])) for one in found[kind])
