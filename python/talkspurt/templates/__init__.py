"""Scenarios to start from: the TOML files of this folder, and the recordings and traces they name.

``talkspurt init`` writes one into a folder of the user, together with the JSON Schema of a
scenario. It runs there, and editors check it there, without a clone of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args

from talkspurt import _core
from talkspurt._storage import file_access
from talkspurt.errors import BadInputError
from talkspurt.scenarios import provenance

Name = Literal[
    "first-call",
    "compare",
    "own-recording",
    "two-way",
    "queues",
    "wifi",
    "cellular",
    "satellite",
    "leo",
    "video",
    "opus",
    "webrtc-call",
    "controllers",
    "many-flows",
    "failover",
    "lab-tcp-voice",
    "lab-ssthresh",
]
"""The templates, from the first to those for special questions."""

SCHEMA = "talkspurt.schema.json"

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "speech")


def text(name: Name) -> str:
    """A template as it is written for the user: its schema is the file beside it."""
    content = (HERE / f"{name}.toml").read_text(encoding="utf-8")
    return re.sub(r"\A#:schema .*", f"#:schema ./{SCHEMA}", content)


def titles() -> dict[str, str]:
    """The question that each template answers."""
    return {name: _read(name)["title"] for name in get_args(Name)}


def write(name: Name, path: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a template, the files it names and the schema; returns them, the scenario first.

    Args:
        name: the template.
        path: the scenario's file, if it ends in ``.toml``, or else its folder.
        overwrite: replace existing files.

    Raises:
        BadInputError: if a file has other content and ``overwrite`` is not set; nothing is written.
        talkspurt.errors.StoreError: if a file cannot be written.
    """
    file = path if path.suffix == ".toml" else path / f"{name}.toml"
    contents = {file: text(name).encode()}
    for named in provenance.files_in(_read(name)):
        asset = next(f / named for f in FOLDERS if (f / named).exists())
        contents[file.parent / asset.name] = asset.read_bytes()
    contents[file.parent / SCHEMA] = _core.schema().encode()
    wanted = [file for file, data in contents.items() if overwrite or not _holds(file, data)]
    there = [str(file) for file in wanted if file.exists() or file.is_symlink()]
    if there and not overwrite:
        raise BadInputError(
            f"{', '.join(there)}: already there with other content; nothing was written. "
            "Say --overwrite to replace them, or name another PATH"
        )
    with file_access.writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    for each in wanted:
        # "x": a file that has appeared since is not overwritten either.
        with file_access.writing(each), each.open("wb" if overwrite else "xb") as out:
            out.write(contents[each])
    return list(contents)


def _holds(file: Path, data: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data


def _read(name: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
