"""Studies whose cluster fails: writes results.md. `python -m validation.cluster.failures [NAME …]`.

Each study has to end with the tables of one machine, or with one message and status 1 or 2, after
which the same command continues. Needs root for the worker with a full disk and for the one that
does not see a recording (mount namespaces), and openssl for certificates.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from talkspurt.results.audio import wav
from validation.cluster.machines import Machines, another_version, kill, stopped, study, tables

RUNS = 48
LIMIT_S = 3600


@dataclass
class Place:
    """A folder with a study, and the tables of one machine."""

    folder: Path

    def study(self, duration: str = "60s", *, runs: int = RUNS, file: str = "") -> None:
        """Write the study, and run it on this machine into `whole`."""
        (self.folder / "study.toml").write_text(study("A study", duration, runs, file=file))
        done = self.start("--out", "whole")
        assert done.wait(LIMIT_S) == 0, self.said

    def start(self, *words: str) -> subprocess.Popen:
        """Start the study with these options."""
        with (self.folder / "errors").open("w") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "talkspurt", "run", "study.toml", "--no-report", *words],
                cwd=self.folder, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip

    @property
    def said(self) -> str:
        """What the last command wrote to standard error, without progress."""
        lines = (self.folder / "errors").read_text().splitlines()
        assert "Traceback" not in "".join(lines), lines
        return " / ".join(line for line in lines if not line.startswith("A study"))

    @property
    def finished(self) -> int:
        """Runs that have been kept."""
        return len(list(self.folder.glob(".out.unfinished-*/runs/*/manifest.json")))

    def until(self, there: Callable[[], bool], process: subprocess.Popen) -> None:
        """Wait for something while a command runs."""
        end = time.monotonic() + LIMIT_S
        while not there():
            assert process.poll() is None, f"it ended before: {self.said}"
            assert time.monotonic() < end, f"it does not come: {self.said}"
            time.sleep(0.01)

    def same(self, process: subprocess.Popen) -> str:
        """Wait for the study, which has to have the tables of one machine."""
        assert process.wait(LIMIT_S) == 0, self.said
        one, other = tables(self.folder / "whole"), tables(self.folder / "out")
        assert one == other and len(one) > RUNS, self.said
        return f"all {len(one)} tables have the bytes of one machine"


def workers_killed(place: Place) -> str:
    """Four workers, two killed with -9 at random points."""
    place.study()
    rng, found = random.Random(20), []
    for trial in range(3):
        with Machines(place.folder) as machines:
            machines.scheduler()
            workers = [machines.worker(f"w{trial}{n}") for n in range(4)]
            machines.wait(4)
            running = place.start("--out", "out", "--cluster", machines.url)
            at = sorted(rng.sample(range(1, RUNS - 8), 2))
            for point, victim in zip(at, rng.sample(workers, 2), strict=True):
                place.until(lambda point=point: place.finished >= point, running)
                time.sleep(rng.random() / 5)
                kill(victim)
            found.append(f"{at[0]} and {at[1]}")
            same = place.same(running)
        shutil.rmtree(place.folder / "out")
    return f"killed after {', '.join(found)} of {RUNS} runs: {same}"


@contextlib.contextmanager
def without_scheduler(place: Place) -> Iterator[tuple[Machines, subprocess.Popen]]:
    """A study whose scheduler was killed after some runs."""
    place.study()
    with Machines(place.folder) as machines:
        first = machines.scheduler()
        machines.worker("w0")
        machines.wait(1)
        running = place.start("--out", "out", "--cluster", machines.url)
        place.until(lambda: place.finished > 2, running)
        kill(first)
        yield machines, running


def scheduler_restarted(place: Place) -> str:
    """The scheduler killed, and started again with new workers."""
    with without_scheduler(place) as (machines, running):
        time.sleep(20)  # longer than dask's client looks for it
        before = place.finished
        machines.scheduler()
        machines.worker("w1")
        same = place.same(running)
    return f"lost for 20 s after {before} of {RUNS} runs; the command went on: {same}"


def scheduler_gone(place: Place) -> str:
    """The scheduler killed for good."""
    with without_scheduler(place) as (_, running):
        assert running.wait(LIMIT_S) == 1
        said = place.said
        assert "scheduler could not be reached for 60 s" in said, said
        assert re.search(rf"\d+ of {RUNS} runs are kept: the same command goes on", said), said
    same = place.same(place.start("--out", "out"))
    assert "runs were there already" in place.said
    return f"`{said}`; the same command without a cluster: {same}"


def another_build(place: Place) -> str:
    """A worker of another version."""
    place.study("2s")
    with Machines(place.folder) as machines:
        machines.scheduler()
        worker = machines.worker("w0")
        machines.worker("old", env=another_version(place.folder))
        machines.wait(2)
        with stopped(worker):
            running = place.start("--out", "out", "--cluster", machines.url)
            place.until(lambda: "rejected" in place.said, running)
        same = place.same(running)
        (said,) = [part for part in place.said.split(" / ") if "rejected" in part]
    return f"`{said}`; {same}"


def hidden(folder: Path) -> tuple[str, ...]:
    """Words that start a command for which a folder is empty."""
    script = f'mount -t tmpfs none "{folder}" && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh")


def without_recording(place: Place) -> str:
    """Workers without the recording."""
    folder = place.folder / "recordings"
    folder.mkdir()
    # Half a second of a sawtooth.
    sawtooth = b"".join((t * 700 % 9000).to_bytes(2, "little") for t in range(4000))
    (folder / "speech.wav").write_bytes(wav(sawtooth, 8000))
    place.study("2s", file="recordings/speech.wav")
    with Machines(place.folder) as machines:
        machines.scheduler()
        for n in range(2):
            machines.worker(f"w{n}", before=hidden(folder))
        machines.wait(2)
        same = place.same(place.start("--out", "out", "--cluster", machines.url))
        kept = list(place.folder.glob("w*/**/talkspurt-files/*"))
        assert kept, "no recording was sent"
    sounds = [
        sorted(file.read_bytes() for file in (place.folder / name).rglob("*.wav"))
        for name in ("whole", "out")
    ]
    assert sounds[0] == sounds[1] and len(sounds[0]) == 2 * RUNS
    return f"it was sent to {len(kept)} of 2; {same}, and so have the sounds"


def full_disk(place: Place) -> str:
    """A full disk at one worker."""
    place.study("20s")
    small = place.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", small], check=True)
    try:
        with Machines(place.folder) as machines:
            machines.scheduler()
            machines.worker("small", folder=small)
            machines.worker("large")
            machines.wait(2)
            (small / "full").write_bytes(bytes((2 << 20) - (64 << 10)))
            same = place.same(place.start("--out", "out", "--cluster", machines.url))
            (said,) = [part for part in place.said.split(" / ") if "rejected" in part]
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
    return f"`{said}`; {same}"


def certificates(folder: Path) -> dict[str, Path]:
    """An authority, and a certificate for all of 127.0.0.1."""
    ca, key, cert, ask = (folder / name for name in ("ca.pem", "own.key", "own.pem", "own.csr"))
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=talkspurt"]
    for words in (
        [*new, "-x509", "-days", "2", "-keyout", folder / "ca.key", "-out", ca],
        [*new, "-keyout", key, "-out", ask],
        ["openssl", "x509", "-req", "-days", "2", "-in", ask, "-CA", ca, "-CAkey",
         folder / "ca.key", "-CAcreateserial", "-extfile", folder / "names", "-out", cert],
    ):  # fmt: skip
        subprocess.run([*map(str, words)], check=True, capture_output=True)
    return {"ca": ca, "cert": cert, "key": key}


def encrypted(place: Place) -> str:
    """TLS with certificates of an own authority."""
    place.study("2s")
    other = place.folder / "other"
    other.mkdir()
    own, foreign = certificates(place.folder), certificates(other)
    with Machines(place.folder, own) as machines:
        machines.scheduler()
        machines.worker("w0")

        def start(files: dict[str, Path]) -> subprocess.Popen:
            words = (word for key, file in files.items() for word in (f"--tls-{key}", str(file)))
            return place.start("--out", "out", "--cluster", machines.url, *words)

        assert start(foreign).wait(LIMIT_S) == 2
        said = place.said
        assert "cannot be reached" in said, said
        same = place.same(start(own))
    return f"{same}; with certificates of another authority `{said}`"


def ten_thousand(place: Place) -> str:
    """10 000 runs of 1 s on two workers."""
    place.study("1s", runs=10_000)
    began = time.monotonic()
    same = place.same(place.start("--out", "out", "--cluster", "local:2"))
    return f"{same}; {time.monotonic() - began:.0f} s with the start of the workers"


def equal_workers(place: Place) -> str:
    """Equal workers, and codecs whose output depends on the machine."""
    proofs = []
    code = (
        "import json, sys; from talkspurt._cluster import proof; "
        "print(json.dumps(proof.of_this(json.loads(sys.argv[1]))))"
    )
    opus = {"codec": "opus", "packet": "20ms"}
    codecs = [
        {"codec": "pcmu", "packet": "20ms"},
        opus,
        {**opus, "opus": {"bitrate": "24kbit/s", "rate_control": "vbr"}},
        {**opus, "opus": {"bitrate": "24kbit/s", "dtx": True}},
        {**opus, "opus": {"bitrate": "24kbit/s", "fec": True, "expected_loss": 0.1}},
        {**opus, "opus": {"bitrate": "32kbit/s", "dred": "200ms", "expected_loss": 0.1}},
        {"codec": "pcmu", "packet": "20ms", "vad": {}},
        {"codec": "opus", "packet": "20ms", "red": 1},
    ]
    for _ in range(4):
        words = [sys.executable, "-c", code, json.dumps(codecs)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place.folder)
        proofs.append(json.loads(done.stdout))
    first, *others = proofs
    assert all(one == first for one in others)
    coded = {what: value for what, value in first.items() if "codec" in what}
    assert len(coded) == len(codecs)
    bad = [value for value in coded.values() if value.startswith("none")]
    assert not bad, bad
    return f"{len(coded)} encodings in {len(proofs)} processes: equal proofs"


ALL: tuple[Callable[[Place], str], ...] = (
    workers_killed, scheduler_restarted, scheduler_gone, another_build, without_recording,
    full_disk, encrypted, equal_workers, ten_thousand,
)  # fmt: skip


def main() -> None:
    """Run the studies with these names, or all, and write their rows of results.md."""
    results = Path(__file__).with_name("results.md")
    before = results.read_text().splitlines() if results.exists() else []
    rows = {line.split(" | ")[0]: line for line in before if line.startswith("| ")}
    for one in ALL:
        if sys.argv[1:] and one.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="talkspurt-cluster-") as folder:
            found = one(Place(Path(folder))).replace(folder, "…")
        found = re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:…", found)
        fault = f"| {str(one.__doc__)[:-1]}"
        rows[fault] = f"{fault} | {found} |"
        print(rows[fault], flush=True)
        order = [f"| {str(each.__doc__)[:-1]}" for each in ALL]
        lines = [rows[each] for each in order if each in rows]
        head = "# Results of failures.py\n\n| fault | outcome |\n|---|---|\n"
        results.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
