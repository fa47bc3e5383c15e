"""Instructions per hop, which do not depend on what else the machine does.

Valgrind's callgrind counts those of two runs of different length; the difference, over that of
their hops, is what one more hop costs, without set-up.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence

from benches.cost import FailedError

LENGTHS = {"w1": (2, 6), "w2": (1, 2), "w3": (4, 12), "w3d": (4, 8), "w4": (2, 4)}
"""Simulated seconds of the shorter and the longer run; w1's are such that the ramp of slow start,
which ends within them, weighs little."""


def there() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


def per_hop(
    program: str, workload: str, *, lengths: tuple[int, int], more: Sequence[str] = ()
) -> float:
    """Instructions that one more hop of a workload of talkspurt-bench costs."""
    counts = []
    for seconds in lengths:
        instructions, text = counted([program, workload, str(seconds), *more])
        counts.append((instructions, int(json.loads(text)["hops"])))
    (few, fewer_hops), (many, more_hops) = counts
    return (many - few) / (more_hops - fewer_hops)


def counted(command: Sequence[str]) -> tuple[int, str]:
    """Instructions that a program takes, and what it prints.

    Raises:
        FailedError: it failed, or callgrind did not count.
    """
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *command], check=False, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise FailedError(f"{' '.join(command)} under callgrind:\n{done.stderr}")
    return int(found.group(1)), done.stdout
