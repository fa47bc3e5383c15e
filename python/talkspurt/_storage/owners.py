"""Who owns files, and what that permits this process: for results written by several users.

One user of a machine meets the folders of another after `sudo`, in shared folders and in /tmp.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

_HAVE_OWNERS = os.name == "posix"


def is_ours(folder: Path) -> bool:
    """Whether a path is a folder, no link, and belongs to the user of this process.

    Whoever else owns a folder can replace everything in it by links.
    """
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        return False
    if not _HAVE_OWNERS or about.st_uid == os.geteuid():
        return True
    # Some file systems give all files to one user, as vfat does, or root's to nobody, as NFS does.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
        return about.st_uid == Path(fresh).stat().st_uid
    return False


def is_writable(folder: Path) -> bool:
    """Whether this process may add and remove files of a folder."""
    if not _HAVE_OWNERS:
        return True
    effective = os.access in os.supports_effective_ids
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=effective)


def is_movable(folder: Path) -> bool:
    """Whether the sticky bit of the folder around it, as of /tmp, lets this process rename it."""
    around = folder.parent.stat()
    if not _HAVE_OWNERS or not around.st_mode & stat.S_ISVTX:
        return True
    return os.geteuid() in (0, around.st_uid, folder.lstat().st_uid)


def of(path: Path) -> str:
    """The name of the owner of a path, or a number."""
    return _name(path.lstat().st_uid)


def reason(path: Path) -> str:
    """Why there is no permission to use a path, and what helps; empty if that is not known."""
    if not _HAVE_OWNERS:
        return ""
    for place in (path, *path.absolute().parents):
        try:
            about = place.stat()
        except OSError:
            continue
        mode = stat.filemode(about.st_mode)
        if about.st_uid == os.geteuid():
            return f"{place} has the permissions {mode}: change them"
        return (
            f"{place} belongs to {_name(about.st_uid)} with the permissions {mode}, and this runs "
            f"as {_name(os.geteuid())}: change its owner or permissions"
        )
    return ""


def _name(number: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return f"user {number}"
