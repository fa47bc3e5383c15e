"""The command line: each command parses its arguments, calls the package and prints results.

Everything it does is available from Python. Polars, matplotlib and the report are imported only by
commands that need them, so that ``--help`` is fast.
Exit codes: 0 success, 1 failure, 2 invalid input, 130 Ctrl-C, 143 terminated; of ``emulate``, that
of a command that failed.
"""

# Commands add themselves to the application when their modules are imported.
from talkspurt._commands import real_time, results, runs, start  # noqa: F401
from talkspurt._commands.entry import main
from talkspurt._commands.explaining import problem_line
from talkspurt._commands.options import app

__all__ = ["app", "main", "problem_line"]
