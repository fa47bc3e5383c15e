"""The entry point: signals, errors as text, exit codes, and what is said when a command stops."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import os
import signal
import sys
import threading
import time
import warnings
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import IO, Any

from cyclopts import CycloptsError

from talkspurt import _core
from talkspurt._commands.options import BARE, app
from talkspurt._storage import interrupts
from talkspurt._storage.interrupts import Terminated
from talkspurt._text import problems
from talkspurt._text.escaping import below, guard, visible
from talkspurt.errors import BadInputError, FileWarning, MemoryWarning, OtherVersionWarning


def main() -> None:
    """Entry point: reports every error as text with an exit code."""
    global _stops
    _stops = 0
    for number in interrupts.stops():
        signal.signal(number, _on_stop)
    sys.unraisablehook = _on_ignored
    warnings.formatwarning = _in_words
    _hush_figures()
    # A shell that completes words is answered in lines of its own form, of escaped names.
    if sys.argv[1:2] != ["__complete"]:
        guard()
    code = _code()
    # From here on, nothing can be stopped or fail.
    for number in interrupts.STOPS:
        signal.signal(number, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as error:
        if code == 0 and error.errno != errno.EPIPE:
            code = explain(error) or 1
        _hush()
    # If a KeyboardInterrupt left an executed string, as dataclasses have, CPython ends `python -m`
    # by SIGINT, although the exception was caught. Executing another string resets this.
    exec("")
    # The interpreter searches for cycles as it ends: of objects that end with it anyway.
    gc.disable()
    gc.freeze()
    sys.exit(code)


def _code() -> int:
    try:
        try:
            consoles: Any = map(LateConsole, (sys.stdout, sys.stderr))
            app.console, app.error_console = consoles
            status = app(
                _in_full(sys.argv[1:]),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
            sys.stdout.flush()
        except (KeyboardInterrupt, Terminated) as stop:
            # File systems of stores have requests under way, whose end nobody awaits now.
            logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
            say(f"talkspurt: stopped; {_left(stop)}")
            stopped = isinstance(stop, KeyboardInterrupt)
            return interrupts.status(signal.SIGINT if stopped else signal.SIGTERM)
        return status if isinstance(status, int) else 0
    except CycloptsError as error:
        from talkspurt._commands import mistakes

        say(visible(f"talkspurt: {mistakes.text(error, sys.argv[1:])}"))
        return 2
    except BrokenPipeError:
        _hush()
        return 0
    except (KeyboardInterrupt, Terminated):  # while reporting
        return 130
    except Exception as error:
        code = explain(error)
        if code is None:
            raise
        return code


class LateConsole:
    """Stands for the console of a stream, made when it is first used: most commands do without."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    @cached_property
    def _made(self) -> Any:
        from talkspurt._terminal.console import Output

        return Output(file=below(self._stream))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def _in_full(words: list[str]) -> list[str]:
    """The words of a command line, with the values that may be left out."""
    end = words.index("--") if "--" in words else len(words)
    found = []
    for at, word in enumerate(words[:end], start=1):
        values = BARE.get(word, ())
        alone = values and not {*values}.intersection(words[at : at + 1])
        found.append(f"{word}={values[0]}" if alone else word)
    return found + words[end:]


def _left(stop: BaseException) -> str:
    """The partial results after a stop."""
    done = [f"{visible(str(place))} is written" for place in interrupts.written]
    return "; ".join([*done, *filter(None, [kept(stop)])]) or "nothing was written"


_stops = 0


def _on_stop(number: int, _frame: FrameType | None) -> None:
    """Stop at the first signal; protect the cleanup from all signals but the third."""
    global _stops
    _stops += 1
    if _stops >= interrupts.MAX_STOPS:  # at once, without cleanup
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            os.write(sys.__stderr__.fileno(), b"\x1b[?25h\n")  # a progress bar hides the cursor
        os._exit(interrupts.status(number))
    if _stops == 1:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _on_ignored(ignored: sys.UnraisableHookArgs) -> None:
    """Signal again later if Python ignores a stop, as it does every exception in a destructor.

    It does so in callbacks of weak references, too, which collect garbage at any instant.
    """
    global _stops
    if not issubclass(ignored.exc_type, (KeyboardInterrupt, Terminated)):
        sys.__unraisablehook__(ignored)
        return
    _stops = 0
    number = signal.SIGINT if issubclass(ignored.exc_type, KeyboardInterrupt) else signal.SIGTERM
    threading.Thread(target=_again, args=(number,), daemon=True).start()


def _again(number: int) -> None:
    """Signal until Python notices: a call that then waits in C misses an earlier signal."""
    time.sleep(0.01)  # until Python no longer ignores it
    while not _stops and not interrupts.came():
        os.kill(os.getpid(), number)
        time.sleep(0.05)


OURS = (OtherVersionWarning, FileWarning, MemoryWarning)


def _hush_figures() -> None:
    """Keep what matplotlib warns of, in logs or on behalf of our code, from the terminal."""
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=r"(matplotlib|mpl_toolkits)\b")
    warnings.filterwarnings("ignore", category=UserWarning, module=r"talkspurt\b")
    for ours in OURS:
        warnings.filterwarnings("default", category=ours)


_plainly = warnings.formatwarning


def _in_words(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> str:
    """A warning for users in talkspurt's format; others in Python's."""
    if issubclass(category, OURS):
        return f"talkspurt: {visible(str(message))}\n"
    return _plainly(message, category, *more, **named)


def _hush() -> None:
    # The reader is gone (`| head`), or the disk is full: discard the last flush.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        # The name that the user knows of a file: its URL, if it was downloaded.
        remote = sys.modules.get("talkspurt._storage.remote")  # without a URL, it is not imported
        named = error.filename and str(error.filename)
        where = f"{remote.asked_for(named) if remote else named}: " if named else ""
        said = visible(f"talkspurt: {where}{error.strerror or error}")
        say("; ".join(filter(None, [said, _owned(error), kept(error)])))
        return 2 if error.errno in NAMED_WRONGLY else 1
    return None


def _owned(error: OSError) -> str:
    """Whose file it is that there is no permission to use."""
    file = error.filename
    if error.errno not in (errno.EACCES, errno.EPERM) or not isinstance(file, str):
        return ""
    from talkspurt._storage import file_access, owners

    return "" if file_access.url_of(file) else visible(owners.reason(Path(file)))


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
    return visible(problems.text(problem))


def say(words: str) -> None:
    """Print a message on standard error, if anybody reads it."""
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def kept(error: BaseException) -> str:
    """The files that remain after the error, if any."""
    return "; ".join(getattr(error, "__notes__", []))
