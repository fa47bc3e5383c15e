"""Results on an S3-compatible server: writes results.md. `python -m validation.remote.s3`.

Needs `pip install s3fs 'moto[server]'`, which bring 60 packages along and are therefore not among
those of the tests. The server of moto runs on the loopback interface. tests/test_remote.py tests
the same with `memory://` and `file://`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from validation.cluster.machines import free_port, study, tables, wait_for_port

STUDY = study("A study on S3", "300s", 20)
URL = "s3://results/deep/study"
WAIT_S = 60


class Server:
    """moto's server, which ends with the block; with ``keys``, it knows no user."""

    def __init__(self, *, keys: bool = False) -> None:
        self.port = free_port()
        # After the creation of the bucket, moto checks signatures.
        self.more = {"INITIAL_NO_AUTH_ACTION_COUNT": "1"} if keys else {}

    def __enter__(self) -> dict[str, str]:
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(
            words, env={**os.environ, **self.more},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for_port(self.port)
        address = f"http://127.0.0.1:{self.port}"
        user = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
        env = {**os.environ, **user, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": address}
        code = "import boto3; boto3.client('s3').create_bucket(Bucket='results')"
        subprocess.run([sys.executable, "-c", code], check=True, env=env)
        return env

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def talkspurt(
    *words: str | Path, cwd: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    done = subprocess.run(
        [sys.executable, "-m", "talkspurt", *map(str, words)], cwd=cwd, env=env, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def listed(env: dict[str, str]) -> list[str]:
    """The names in the bucket."""
    with urllib.request.urlopen(f"{env['AWS_ENDPOINT_URL']}/results?list-type=2") as found:
        return re.findall("<Key>(.*?)</Key>", found.read().decode())


def killed_and_resumed(folder: Path) -> list[str]:
    """A study killed with -9 and continued by another folder's process; then read by commands."""
    (folder / "study.toml").write_text(STUDY)
    said = []
    with Server() as env:
        whole = talkspurt("run", "study.toml", "--no-report", "--out", "whole", cwd=folder, env=env)
        assert whole.returncode == 0, whole.stderr
        words = ("run", "study.toml", "--no-report", "--out", URL, "--jobs", "1")
        running = subprocess.Popen(
            [sys.executable, "-m", "talkspurt", *words], cwd=folder, env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + WAIT_S
        while len([name for name in listed(env) if name.endswith(".tar")]) < 2:
            assert running.poll() is None and time.monotonic() < end
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert not [name for name in listed(env) if name.endswith("study/manifest.json")]
        done = talkspurt(*words, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
        (line,) = [one for one in done.stderr.splitlines() if "there already" in one]
        assert 0 < int(line.split()[1]) < 20, line
        said.append(f"killed with -9, then: `{line}`")
        assert not [name for name in listed(env) if "unfinished" in name or "probe" in name]
        code = (
            "import sys, shutil; from talkspurt._storage import remote; "
            "shutil.copytree(remote.of(sys.argv[1]).downloaded(), 'copy')"
        )
        subprocess.run([sys.executable, "-c", code, URL], cwd=folder, env=env, check=True)
        assert tables(folder / "copy") == tables(folder / "whole")
        said.append(f"its {len(tables(folder / 'copy'))} tables have the bytes of a folder's")
        for command in (
            ("report", URL), ("plot", URL, "mos", "-o", "mos.png"), ("metrics", URL, "--table"),
            ("compare", URL, "whole", "--json"),
        ):  # fmt: skip
            done = talkspurt(*command, cwd=folder, env=env)
            assert done.returncode == 0, done.stderr
        assert "deep/study/report.html" in listed(env)
        said.append("report, plot, metrics and compare read it, and report writes to it")
        gone = talkspurt("run", "study.toml", "--out", "s3://absent/study", cwd=folder, env=env)
        assert gone.returncode == 2, gone
        said.append(f"no such bucket: `{gone.stderr.strip()}`, status 2")
    return said


def without_permission(folder: Path) -> list[str]:
    """Keys that the server does not know."""
    (folder / "study.toml").write_text(STUDY)
    with Server(keys=True) as env:
        done = talkspurt("run", "study.toml", "--out", URL, cwd=folder, env=env)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1, done.stderr
        lost = talkspurt("plot", URL, "mos", cwd=folder, env=env)
        assert lost.returncode != 0
    env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    off = talkspurt("run", "study.toml", "--out", URL, cwd=folder, env=env)
    assert off.returncode == 2 and off.stderr.count("\n") == 1, off.stderr
    return [
        f"no permission: `{done.stderr.strip()}`, status 2; reading: `{lost.stderr.strip()}`",
        f"no server: `{off.stderr.strip()}`, status 2",
    ]


def main() -> None:
    """Run both and write results.md."""
    said: list[str] = []
    parts: tuple[Any, ...] = (killed_and_resumed, without_permission)
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            said += part(Path(folder))
    text = "# Results of s3.py\n\n" + "".join(f"* {line}\n" for line in said)
    print(text)
    Path(__file__).with_name("results.md").write_text(text)


if __name__ == "__main__":
    main()
