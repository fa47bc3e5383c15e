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
    from talkspurt.importing.reading import import_trace
    from talkspurt.real_time.calling import Voice, call
    from talkspurt.real_time.measuring import Traffic, measure
    from talkspurt.real_time.serving import serve
    from talkspurt.results.audio import Audio
    from talkspurt.results.result import Result, Study
    from talkspurt.runs.exporting import export
    from talkspurt.runs.merging import merge
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
    "Traffic",
    "Voice",
    "__version__",
    "call",
    "compare",
    "export",
    "import_trace",
    "load",
    "measure",
    "merge",
    "read",
    "run",
    "run_until",
    "serve",
]

_MODULES = {
    "Audio": "results.audio",
    "Emulation": "emulating",
    "Result": "results.result",
    "Study": "results.result",
    "Traffic": "real_time.measuring",
    "Voice": "real_time.calling",
    "call": "real_time.calling",
    "compare": "api",
    "export": "runs.exporting",
    "import_trace": "importing.reading",
    "load": "api",
    "measure": "real_time.measuring",
    "merge": "runs.merging",
    "read": "scenarios.source",
    "run": "api",
    "run_until": "runs.sequential",
    "serve": "real_time.serving",
}


def __getattr__(name: str) -> object:
    """Import a module of the package when one of its names is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'talkspurt' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"talkspurt.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
