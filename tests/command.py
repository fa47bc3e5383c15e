"""The command line run as a user runs it: in a process of its own."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

import warm


def needs(program, package, variable):
    """Skip a test whose program is missing, unless ``TALKSPURT_REQUIRE_<variable>`` is set."""
    required = os.environ.get(f"TALKSPURT_REQUIRE_{variable}")
    missing = shutil.which(program) is None and not required
    return pytest.mark.skipif(missing, reason=f"{program} is not installed (Debian: {package})")


TALKSPURT = (sys.executable, "-m", "talkspurt")
needs_ns = needs("ns", "ns2", "NS2")
needs_tshark = needs("tshark", "tshark", "TSHARK")

CHECKS = [word for layer in ("ip", "udp", "tcp") for word in ("-o", f"{layer}.check_checksum:TRUE")]
"""Options of tshark: it checks sums."""


def _words(words):
    return [word if isinstance(word, bytes) else str(word) for word in words]


_parent = None


def process(*words, env=None, **more):
    """Run a program and wait for it: its exit code, and what it wrote to its standard streams.

    ``env`` has the variables that differ from those here.
    """
    given = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run(_words(words), env={**os.environ, **(env or {})}, **given | more)


def output(*words, **more):
    """The same, and it succeeds: what it wrote to its standard output."""
    done = process(*words, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dissected(capture, *names, where=None, options=()):
    """What tshark reads in these fields, a list of texts for each packet."""
    wanted = [word for name in names for word in ("-e", name)]
    wanted += ["-Y", where] if where else []
    text = output("tshark", "-n", "-r", capture, *options, "-T", "fields", *wanted)
    return [line.split("\t") for line in text.splitlines()]


def talkspurt(*words, cwd=None, env=None, **more):
    """Run ``talkspurt WORDS`` and wait for it, where possible without its imports."""
    global _parent
    wanted = {**os.environ, **(env or {})}
    if not more and hasattr(os, "fork"):
        if _parent is None or _parent.process.poll() is not None:
            _parent = warm.Parent()
        if _parent.fits(wanted):
            return _parent.run(_words(words), cwd, wanted)
    return process(*TALKSPURT, *words, cwd=cwd, env=env, **more)


def succeed(*words, **more):
    """The same, and it succeeds."""
    return _ended(0, *words, **more)


def refused(*words, **more):
    """The same, and it ends with the status of bad input, and without a traceback."""
    done = _ended(2, *words, **more)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def told(*words, **more):
    """The same, and the one line that it says, which is all."""
    done = refused(*words, **more)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1), done.stdout + done.stderr
    return done.stderr


def _ended(status, *words, **more):
    done = talkspurt(*words, **more)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def until(there, process=None, within=60.0):
    """Wait until something is true: at most so many seconds, and while a process runs."""
    end = time.monotonic() + within
    while not there():
        assert process is None or process.poll() is None, "the process ended before"
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.01)


def until_said(process, percent):
    """Wait until a command that has no terminal says that so much of its time has passed."""
    passed = 0.0
    while passed < percent:
        line = process.stderr.readline()
        said = re.search(r": +(\d+)%", line)
        assert said, line + process.stderr.read()
        passed = float(said[1])


def start(*words, env=None, stderr=subprocess.PIPE, **more):
    """Start ``talkspurt WORDS`` and do not wait; ``env`` has the variables that differ."""
    env = {**os.environ, **(env or {})}
    given = {"stdout": subprocess.PIPE, "stderr": stderr, "text": True}
    return subprocess.Popen([*TALKSPURT, *_words(words)], env=env, **given | more)
