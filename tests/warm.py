"""Processes for commands that begin where ``python -m talkspurt`` has done its imports.

Their parent imports what commands use, once, and uses none of it, so that it has no threads. It
forks a process for each request: with arguments, folder, environment and standard streams of its
own. The imports take most of the processor time of a short command.
"""

import atexit
import importlib
import json
import os
import pkgutil
import runpy
import socket
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

SAFE = {"COLUMNS", "NO_COLOR", "PYTEST_CURRENT_TEST", "TALKSPURT_SECRET", "TERM"}
"""Variables that no import reads."""
LIMIT_S = 120


class Parent:
    """The process that forks those of commands, as seen by a test."""

    def __init__(self):
        self.env = dict(os.environ)
        self.line, far = socket.socketpair()
        self.line.settimeout(LIMIT_S)
        words = [sys.executable, __file__, str(far.fileno())]
        self.process = subprocess.Popen(
            words, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL, cwd="/"
        )
        far.close()
        atexit.register(self.end)

    def fits(self, env):
        """Whether this environment differs only in what no import reads."""
        names = self.env.keys() | env.keys()
        return all(name in SAFE or self.env.get(name) == env.get(name) for name in names)

    def run(self, words, cwd, env):
        """Run a command: its exit code, and what it wrote to its standard streams."""
        words = [os.fsdecode(word) for word in words]
        request = json.dumps([words, str(cwd or Path.cwd()), env]).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            socket.send_fds(
                self.line, [struct.pack("i", len(request))], [out.fileno(), err.fileno()]
            )
            self.line.sendall(request)
            try:
                (code,) = struct.unpack("i", self.line.recv(4))
            except BaseException:  # too late, or stopped: the next command has another parent
                self.process.kill()
                raise
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode().replace("\r\n", "\n").replace("\r", "\n"))
        return subprocess.CompletedProcess(words, code, *said)

    def end(self):
        self.line.close()
        self.process.wait()


def serve(line):
    """Fork for each request until there are none; returns in the forked process."""
    files = []
    while True:
        head, files, _, _ = socket.recv_fds(line, 4, 2)
        if not head:
            sys.exit()
        request, (length,) = b"", struct.unpack("i", head)
        while len(request) < length:
            request += line.recv(1 << 20)
        child = os.fork()
        if not child:
            break
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        line.sendall(struct.pack("i", os.waitstatus_to_exitcode(status)))
    line.close()
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
        os.close(file)
    words, cwd, env = json.loads(request)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[0] = cwd
    sys.argv[1:] = words


if __name__ == "__main__":
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401

    import talkspurt

    for module in pkgutil.walk_packages(talkspurt.__path__, "talkspurt."):
        if module.name not in ("talkspurt.__main__", "talkspurt._core"):
            importlib.import_module(module.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("talkspurt", run_name="__main__", alter_sys=True)
