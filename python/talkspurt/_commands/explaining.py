"""Errors as text for users, and their exit codes."""

from __future__ import annotations

import contextlib
import errno
import sys
from pathlib import Path

from talkspurt import _core
from talkspurt._storage import file_access, owners
from talkspurt._text import problems
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError


def explain(error: Exception) -> int | None:
    """Report an error as text; returns the exit code, or None for an internal error."""
    if isinstance(error, _core.ScenarioError):
        for problem in error.problems:
            say(problem_line(problem))
        return 2
    if isinstance(error, BadInputError):
        say("\n".join(f"talkspurt: {line}" for line in str(error).split("\n")))
        return 2
    if isinstance(error, _core.RunError):
        say("; ".join(filter(None, [f"talkspurt: {error}", kept(error)])))
        return 1
    if isinstance(error, OSError):
        where = f"{_asked_for(str(error.filename))}: " if error.filename else ""
        said = visible(f"talkspurt: {where}{error.strerror or error}")
        say("; ".join(filter(None, [said, _owned(error), kept(error)])))
        return 2 if error.errno in NAMED_WRONGLY else 1
    return None


def _owned(error: OSError) -> str:
    """Whose file it is that there is no permission to use."""
    file = error.filename
    if error.errno not in (errno.EACCES, errno.EPERM) or not isinstance(file, str):
        return ""
    return "" if file_access.url_of(file) else visible(owners.reason(Path(file)))


def _asked_for(file: str) -> str:
    """The name that the user knows of a file: its URL, if it was downloaded."""
    remote = sys.modules.get("talkspurt._storage.remote")  # without a URL, it is not imported
    return str(remote.asked_for(file)) if remote else file


NAMED_WRONGLY = {
    errno.ENOENT,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENXIO,
    errno.EMSGSIZE,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""System errors caused by a file name from the user."""


def problem_line(problem: _core.Problem) -> str:
    """A scenario error as one line."""
    return visible(problems.text(problem))


def say(words: str) -> None:
    """Print a message on standard error, if anybody reads it."""
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def kept(error: BaseException) -> str:
    """The files that remain after the error, if any."""
    return "; ".join(getattr(error, "__notes__", []))
