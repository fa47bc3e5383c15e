"""Instructions per hop, independent of other load on the machine.

Valgrind's callgrind counts the instructions of two runs of different length; their difference, over
the difference in hops, is the cost of one more hop, without set-up.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence

from benches.cost import FailedError

LENGTHS = {
    "w1": (2, 6),
    "w2": (1, 2),
    "w2a": (1, 2),
    "w3": (4, 12),
    "w3d": (4, 8),
    "w4": (2, 4),
    "w7": (2, 4),
}
"""Simulated seconds of the shorter and the longer run; w1's are long enough that slow start, which
ends within both, has little weight."""


def there() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


def per_hop(
    program: str, workload: str, *, lengths: tuple[int, int], more: Sequence[str] = ()
) -> float:
    """Instructions per additional hop of a talkspurt-bench workload."""
    counts = []
    for seconds in lengths:
        instructions, text = counted([program, workload, str(seconds), *more])
        counts.append((instructions, int(json.loads(text)["hops"])))
    (few, fewer_hops), (many, more_hops) = counts
    return (many - few) / (more_hops - fewer_hops)


def counted(command: Sequence[str]) -> tuple[int, str]:
    """The instructions of a program, and its output.

    Raises:
        FailedError: it failed, or callgrind did not count.
    """
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *command], check=False, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise FailedError(f"{' '.join(command)} under callgrind:\n{done.stderr}")
    return int(found.group(1)), done.stdout
