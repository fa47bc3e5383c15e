"""Errors caused by users or their environment, not by talkspurt; raised anywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from talkspurt.results.result import Result


class BadInputError(Exception):
    """Invalid user input; the message states the problem and the expectation.

    Attributes:
        kind: what another machine refused or failed in, as :class:`talkspurt.RunError` has it, such
            as ``busy`` or ``secret``; None of an argument.
    """

    kind: str | None = None


class Faults:
    """Everything that is wrong with the options of a command, to be raised at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep what a check in this block raises for :meth:`check`."""
        try:
            yield
        except (BadInputError, ValueError, RuntimeError) as error:
            self.found.append(str(error))

    def add(self, fault: str, *, unless: object = False) -> None:
        """A fault, unless a condition holds."""
        if not unless:
            self.found.append(fault)

    def check(self) -> None:
        """Raise BadInputError with everything found."""
        if self.found:
            from talkspurt._text.escaping import visible

            raise BadInputError(visible("; ".join(self.found)))


class EndedEarlyError(BadInputError):
    """A measurement or a call ended before its time, as when the other end was lost.

    Attributes:
        result: the :class:`talkspurt.Result` of what was measured until then, if there is one. It
            does not cross processes.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[EndedEarlyError], tuple[str]]:
        """Without the result: its tables belong to the process."""
        return type(self), (str(self),)


class MissingExtraError(BadInputError, ImportError):
    """Optional packages are not installed; the message names them and the command."""


class StoreError(OSError):
    """A result could not be written or read; names the file and the reason."""


class OtherVersionWarning(UserWarning):
    """A readable result of another version, which may have measured differently."""


class MemoryWarning(UserWarning):
    """Runs are estimated to take most of the memory of the machine."""


class FileWarning(UserWarning):
    """A file that a scenario names was read, but not all of it, or otherwise than written."""
