"""Compares the memory that runs are estimated to take with the machine's, before they start."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Collection
from pathlib import Path

from talkspurt import _core
from talkspurt._storage.file_access import size
from talkspurt.errors import BadInputError, MemoryWarning
from talkspurt.runs import engine

PROGRAM, STUDY = 50e6, 120e6
"""Bytes of the process beside its runs, and of the packages that only a study needs."""
RUN, ROWS = 10e3, 0.25
"""Bytes of a run of a study of which only the rows of its summary are kept, and what these rows
take as a share of what the run itself takes."""
MUCH = 0.7
"""Share of the limit above which there is a warning."""


def machine() -> float | None:
    """Bytes that this process may use: those of the machine, or of its control group; or None."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # not on Windows
        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    with contextlib.suppress(ValueError, OSError):  # "max", or no such group
        found.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(found, default=None)


def estimate(
    plan: _core.Plan,
    runs: Collection[int],
    *,
    jobs: int | None,
    tables: engine.Tables,
    heard: bool,
) -> float:
    """Bytes that a process takes at most while it executes these runs of a plan."""
    each = [plan.memory(i, tables, heard) for i in runs]
    recorded = sorted((more for _, more in each), reverse=True)
    summed = sorted((kept for kept, _ in each), reverse=True)
    window = jobs or engine.cores()
    rows = 0.0
    # Tables in memory stay there; of others, only those of the runs under way are.
    if tables in ("none", "folder") and len(plan) > 1:
        rows = RUN * len(summed) + ROWS * sum(summed)
        recorded, summed = recorded[:window], summed[:window]
    study = STUDY if len(plan) > 1 else 0.0
    return PROGRAM + study + rows + sum(summed) + sum(recorded)


def check(need: float, limit: float | None = None) -> None:
    """Refuse runs that need more than the limit, by default the machine's memory.

    Raises:
        BadInputError: if they do.

    Warns:
        MemoryWarning: if they need more than seven tenths of it.
    """
    there = limit if limit is not None else machine()
    if there is None or need <= MUCH * there:
        return
    whose = "--memory-limit permits" if limit is not None else "this machine has"
    words = f"memory: this takes about {size(need)}, and {whose} {size(there)}"
    if need > there:
        raise BadInputError(
            f"{words}; simulate fewer flows or links, or less time, raise record.interval, lower "
            "--jobs, or permit more by --memory-limit, in GB"
        )
    warnings.warn(words, MemoryWarning, stacklevel=2)
