"""talkspurt: a laboratory for the transport of live voice and video.

>>> import talkspurt
>>> result = talkspurt.run("scenarios/first-call.toml")  # doctest: +SKIP
>>> result.flows                                         # doctest: +SKIP

Importing this package is cheap: polars, matplotlib and the report's templates are loaded when
they are first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt._core import RunError, ScenarioError, version

if TYPE_CHECKING:
    from talkspurt.api import compare, load, run
    from talkspurt.emulating import Emulation
    from talkspurt.results.audio import Audio
    from talkspurt.results.result import Result
    from talkspurt.results.study import Study
    from talkspurt.runs.sequential import run_until
    from talkspurt.scenarios.source import read

__version__ = version()
__all__ = [
    "Audio",
    "Emulation",
    "Result",
    "RunError",
    "ScenarioError",
    "Study",
    "__version__",
    "compare",
    "load",
    "read",
    "run",
    "run_until",
]

_MODULES = {
    "Audio": "results.audio",
    "Emulation": "emulating",
    "Result": "results.result",
    "Study": "results.study",
    "compare": "api",
    "load": "api",
    "read": "scenarios.source",
    "run": "api",
    "run_until": "runs.sequential",
}


def __getattr__(name: str) -> object:
    """Import a module of the package when one of its names is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'talkspurt' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"talkspurt.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
