"""A scheduler and workers of dask.distributed as processes, on the loopback interface."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_port(port: int, seconds: float = 60) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")


class Machines:
    """Processes that are ended with the block."""

    def __init__(self, folder: Path, tls: Mapping[str, Path] | None = None) -> None:
        self.folder = folder
        self.tls = tls
        self.port = free_port()
        kind = "tls" if tls else "tcp"
        self.url = f"{kind}://127.0.0.1:{self.port}"
        names = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
        self.secure = [word for key, file in (tls or {}).items() for word in (names[key], file)]
        if tls:
            self.secure += ["--protocol", "tls"]
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def _start(self, name: str, *words: object, env: dict | None = None) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*map(str, words)], cwd=self.folder, stdout=log, stderr=log,
                env={**os.environ, **(env or {})},
            )  # fmt: skip
        self.processes.append(process)
        return process

    def scheduler(self) -> subprocess.Popen:
        """Start the scheduler, and wait until it listens."""
        process = self._start(
            "scheduler", sys.executable, "-m", "distributed.cli.dask_scheduler", "--host",
            "127.0.0.1", "--port", self.port, "--no-dashboard", *self.secure,
        )  # fmt: skip
        wait_for_port(self.port)
        return process

    def wait(self, count: int, seconds: float = 100) -> None:
        """Wait until this many workers have registered with the scheduler."""
        from distributed import Client

        assert not self.tls, "this client has no certificate"
        with Client(self.url, timeout=seconds, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=seconds)

    def worker(
        self, name: str, *, before: tuple = (), env: dict | None = None, folder: Path | None = None
    ) -> subprocess.Popen:
        """Start a worker with one thread and without a nanny: what kills it ends it."""
        place = folder or self.folder / name
        place.mkdir(exist_ok=True)
        return self._start(
            name, *before, sys.executable, "-m", "distributed.cli.dask_worker", self.url,
            "--host", "127.0.0.1", "--nthreads", 1, "--no-nanny", "--no-dashboard", "--name",
            name, "--local-directory", place, *self.secure, env=env,
        )  # fmt: skip


def another_version(folder: Path) -> dict[str, str]:
    """The environment of a worker of another version: a copy with another number in it."""
    import talkspurt

    package = folder / "other" / "talkspurt"
    shutil.copytree(Path(talkspurt.__file__).parent, package)
    (library,) = package.glob("_core*.so")
    version = talkspurt.__version__.encode()
    other = version[:-1] + bytes([version[-1] ^ 1])
    library.write_bytes(library.read_bytes().replace(version, other))
    return {"PYTHONPATH": str(package.parent)}


def kill(process: subprocess.Popen) -> None:
    """End a process with -9."""
    process.send_signal(signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def stopped(*processes: subprocess.Popen) -> Iterator[None]:
    """Processes that do nothing within the block, however slow or fast the others are."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def tables(folder: Path) -> dict[str, str]:
    """SHA-256 of every table below a folder."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.parquet"))
    }


def study(title: str, duration: str, runs: int, *, file: str = "", record: str = "") -> str:
    """A study of UDP and SCTP with losses, as TOML; ``record`` is the table of that name."""
    spoken = f', file = "{file}"' if file else ""
    recorded = f"record = {record}\n" if record else ""
    return f"""\
title = "{title}"
duration = "{duration}"
seed = 3
{recorded}[links.wire]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "10ms"
loss = 0.05
queue = {{ kind = "droptail", packets = 100 }}
[flows.call]
from = "a"
to = "b"
transport = {{ kind = "udp" }}
source = {{ kind = "speech", codec = "pcmu"{spoken} }}
[[axes]]
name = "transport"
path = "flows.call.transport.kind"
values = ["udp", "sctp"]
[replications]
count = {runs // 2}
"""
