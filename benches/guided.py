"""Builds the benchmark program like ``make dist`` builds the wheel.

A single codegen unit with LTO (the profile ``dist``), optimised with the profile of training runs
(profile-guided optimisation, https://doc.rust-lang.org/rustc/profile-guided-optimization.html). The
training runs are similar to the measured ones, but shorter or of other sizes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benches.cost import FailedError
from benches.peers.programs import BENCH, ROOT

NAME = "talkspurt-bench"
MADE_OF = BENCH.with_suffix(".made-of")
TRAINING = (
    "w5-20 5", "w5-20 5 --noise", "w5-300 1", "w2-250 20", "w3 30 --noise", "w3d 30", "w4 2",
    "w4-pcapng 2", "w4-parquet 2", "w6-20 20",
)  # fmt: skip
"""Arguments of the program."""


def missing() -> str | None:
    """Tools to install before building; None if all are present, or it is already built."""
    try:
        if is_built() or profdata().exists():
            return None
    except FailedError as error:
        return str(error)
    return "Not installed: llvm-tools. With rustup:\n  rustup component add llvm-tools"


def is_built() -> bool:
    """Whether the program matches these sources, this compiler and these flags."""
    if not BENCH.exists() or not MADE_OF.exists():
        return False
    return MADE_OF.read_text(encoding="utf-8") == made_of()


def made_of() -> str:
    """A hash of its sources and tools."""
    hashed = hashlib.sha256(run(["rustc", "--version", "--verbose"]).encode())
    hashed.update(repr(flags()).encode())
    for file in sorted(sources()):
        hashed.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return hashed.hexdigest()


def sources() -> Iterator[Path]:
    """Its source files."""
    yield from (Path(__file__).resolve(), ROOT / "Cargo.toml", ROOT / "Cargo.lock")
    for folder in (ROOT / "crates", ROOT / "benches"):
        yield from folder.rglob("*.rs")
        yield from folder.rglob("Cargo.toml")


def profdata() -> Path:
    """The path of the compiler's ``llvm-profdata`` if installed."""
    sysroot = Path(run(["rustc", "--print", "sysroot"]).strip())
    return sysroot / "lib" / "rustlib" / host() / "bin" / "llvm-profdata"


def host() -> str:
    """The compiler's host target."""
    lines = run(["rustc", "--version", "--verbose"]).splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def build() -> None:
    """Compile, train, compile again; does nothing if it is up to date.

    Raises:
        FailedError: one of them failed.
    """
    if is_built():
        return
    of, host_ = made_of(), host()
    BENCH.parent.mkdir(parents=True, exist_ok=True)
    # A compiler that outlives its parent may still write files.
    with tempfile.TemporaryDirectory(dir=BENCH.parent, ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        seen = work / "seen"
        say("1/3: the program that sees what it does")
        trainee = compiled(work / "trainee", f"-Cprofile-generate={seen}", host_)
        say("2/3: training")
        for number, words in enumerate(TRAINING):
            out = work / f"out-{number}"
            out.mkdir()
            run([trainee, *words.split(), "--out", out])
            shutil.rmtree(out)
        profiles = sorted(seen.glob("*.profraw"))
        if not profiles:
            raise FailedError("the training left no profile")
        profile = work / "training.profdata"
        run([profdata(), "merge", "-o", profile, *profiles])
        say("3/3: the program")
        guided = compiled(work / "guided", f"-Cprofile-use={profile}", host_)
        MADE_OF.unlink(missing_ok=True)
        shutil.move(guided, BENCH)
        MADE_OF.write_text(of, encoding="utf-8")


def compiled(target: Path, flag: str, host: str) -> Path:
    """The program with an extra flag; a named target exempts build scripts from it."""
    # Encoded: a path may have spaces.
    env = {**os.environ, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*flags(), flag])}
    words = ["cargo", "build", "--quiet", "--profile", "dist", "--locked", "-p", NAME]
    run([*words, "--target", host, "--target-dir", target], env=env)
    return target / host / "dist" / NAME


def flags() -> list[str]:
    """The flags that Cargo reads from the environment."""
    encoded = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    if encoded is not None:
        return encoded.split("\x1f") if encoded else []
    return os.environ.get("RUSTFLAGS", "").split()


def say(words: str) -> None:
    """Print progress: each of the three steps takes a minute or two on two cores."""
    print(f"{NAME} as it is given out, {words}", flush=True)


def run(command: Sequence[str | Path], env: dict[str, str] | None = None) -> str:
    """The output of a command.

    Raises:
        FailedError: it could not be started, or failed.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    except OSError as error:
        raise FailedError(f"{words[0]} could not be started: {error}") from None
    if done.returncode != 0:
        raise FailedError(f"{' '.join(words)}\n{done.stderr[-2000:]}")
    return done.stdout
