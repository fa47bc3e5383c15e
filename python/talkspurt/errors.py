"""Errors caused by users or their environment, not by talkspurt; raised anywhere."""

from __future__ import annotations


class BadInputError(Exception):
    """Invalid user input; the message states the problem and the expectation."""


class MissingExtraError(BadInputError, ImportError):
    """Optional packages are not installed; the message names them and the command."""


class StoreError(OSError):
    """A result could not be written or read; names the file and the reason."""


class OtherVersionWarning(UserWarning):
    """A readable result of another version, which may have measured differently."""
