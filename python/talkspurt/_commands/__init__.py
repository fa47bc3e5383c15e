"""The command line: each command parses its arguments, calls the package and prints results.

Everything it does is available from Python. A command is imported when it is given; polars,
matplotlib and the report only by commands that need them.
Exit codes: 0 success, 1 failure, 2 invalid input, 130 Ctrl-C, 143 terminated; of ``emulate``, that
of a command that failed.
"""

from talkspurt._commands.entry import main, problem_line
from talkspurt._commands.options import app

__all__ = ["app", "main", "problem_line"]
