"""What goes wrong by somebody's hand rather than by ours: words for them, raised anywhere."""

from __future__ import annotations


class BadInputError(Exception):
    """Something the user wrote cannot be; the message says what and what was expected."""


class StoreError(OSError):
    """A result could not be written or read; says which file and why."""


class OtherVersionWarning(UserWarning):
    """A result can be read and was made by another version, which may have measured otherwise."""
