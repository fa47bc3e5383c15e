"""The variables of ns-2's agents that a script sets to other values than ns-2's own defaults.

Most published scripts leave them as they are, so that their results differ from this comparison.
The defaults are those of the installed ns-2, which is asked.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

from talkspurt import _core
from talkspurt.ns2.tcl import word

Set = tuple[str, str, str, str]
"""A flow, the class of one of its agents, a variable and its value in the script."""

ASK = """\
set ns [new Simulator]
foreach {class variable} {%s} {
    set agent [new Agent/$class]
    if {[catch {set value [$agent set $variable]}]} { set value "" }
    puts "$class\t$variable\t$value"
}
exit 0
"""


def notes(program: str, settings: Sequence[Set]) -> Iterator[str]:
    """The differences of each flow, once for flows that have the same."""
    asked = dict.fromkeys((agent, variable) for _, agent, variable, _ in settings)
    known = _defaults(program, list(asked))
    flows: dict[str, dict[str, None]] = {}
    for flow, agent, variable, value in settings:
        default = known.get((agent, variable), "")
        if default and _number(default) != _number(value):
            shown = _shown(default, value)
            flows.setdefault(flow, {})[f"{variable} {shown} (here {value})"] = None
    alike: dict[str, list[str]] = {}
    for flow, found in flows.items():
        alike.setdefault(", ".join(found), []).append(flow)
    for words, names in alike.items():
        yield f"{', '.join(names)}: a script with ns-2's own defaults has {words}"


def _defaults(program: str, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    if not asked:
        return {}
    pairs = " ".join(word(part) for pair in asked for part in pair)
    done = subprocess.run([program], input=ASK % pairs, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _core.RunError(f"ns-2 does not tell its defaults:\n{done.stderr[-2000:]}")
    lines = (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2)
    return {(agent, variable): value for agent, variable, value in lines}


def _shown(default: str, value: str) -> str:
    """A default as the script would have it: ns-2 prints 17 digits, and truth values as numbers."""
    number = _number(default)
    if value in ("true", "false"):
        return str(bool(number)).lower()
    return f"{number:g}" if isinstance(number, float) else number


def _number(text: str) -> float | str:
    """A value for comparison: ns-2 prints some truth values as words."""
    try:
        return float({"true": "1", "false": "0"}.get(text, text))
    except ValueError:
        return text
