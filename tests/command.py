"""The command line run as a user runs it: in a process of its own."""

import os
import subprocess
import sys


def talkspurt(*words, cwd=None, env=None, **more):
    """Run ``talkspurt WORDS`` and wait for it."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "talkspurt",
            *(w if isinstance(w, bytes) else str(w) for w in words),
        ],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **more,
    )


def start(*words, cwd=None, stderr=subprocess.PIPE, **more):
    """Start ``talkspurt WORDS`` and do not wait."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "talkspurt",
            *(w if isinstance(w, bytes) else str(w) for w in words),
        ],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        **more,
    )
