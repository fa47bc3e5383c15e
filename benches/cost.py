"""Cost of a process: its total CPU time, user and system, from the kernel's accounting."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Cost = dict[str, Any]
"""``cpu_s``, ``wall_s``, ``peak_mb``, ``bound``, and ``said``: the last JSON object it printed.

A child starts as a copy of its parent, so its ``peak_mb`` is at least that of this process: then it
is only an upper ``bound``. If a program reports its own ``peak_kb``, that is used instead."""


class FailedError(Exception):
    """A program failed; the message contains its name and output."""


def cost(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Cost:
    """Run a program to its end; an interrupt terminates it.

    Raises:
        FailedError: it could not be started, or ended with a status other than 0.
    """
    words = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = time.monotonic()
        try:
            child = subprocess.Popen(words, stdout=out, stderr=err, cwd=cwd, env=env)
        except OSError as error:
            raise FailedError(f"{words[0]} could not be started: {error}") from None
        try:
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if child.returncode is None:
                child.kill()
                child.wait()
        wall_s = time.monotonic() - before
        out.seek(0)
        err.seek(0)
        text, words_of_failure = out.read(), err.read()
    if child.returncode != 0:
        tail = "\n".join(words_of_failure.splitlines()[-5:])
        raise FailedError(f"{' '.join(words)}\nended with status {child.returncode}\n{tail}")
    said = last_object(text)
    peak_kb = said.get("peak_kb", used.ru_maxrss)
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": wall_s,
        "peak_mb": peak_kb / 1e3,
        "bound": "peak_kb" not in said and peak_kb <= ours,
        "said": said,
    }


def last_object(text: str) -> dict[str, Any]:
    """The JSON object on the last line that contains one; empty if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            said: dict[str, Any] = json.loads(line)
            return said
    return {}
