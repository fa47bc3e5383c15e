"""Builds the benchmark program as ``make dist`` builds the wheel.

One unit, linked as a whole (the profile ``dist``), laid out along what training runs were seen to
do (profile-guided optimisation, https://doc.rust-lang.org/rustc/profile-guided-optimization.html).
The runs are of the kinds that are measured, but shorter or of other sizes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benches.cost import FailedError
from benches.peers.programs import BENCH, ROOT

NAME = "talkspurt-bench"
TRAINING = (
    "w5-20 5", "w5-20 5 --noise", "w5-300 1", "w2-250 20", "w3 30 --noise", "w3d 30", "w4 2",
    "w4-pcapng 2", "w4-parquet 2", "w6-20 20",
)  # fmt: skip
"""Arguments of the program."""


def main() -> int:
    """Build it unless it is there; 0 done, 1 something failed, 2 something is missing."""
    if BENCH.exists() and BENCH.stat().st_mtime > max(file.stat().st_mtime for file in sources()):
        return 0
    try:
        tool, host = profdata()
        if not tool.exists():
            print("Not installed: llvm-tools. Nothing was installed and nothing built. With rustup:"
                  "\n  rustup component add llvm-tools", file=sys.stderr)  # fmt: skip
            return 2
        build(BENCH, tool, host)
    except FailedError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def sources() -> Iterator[Path]:
    """What it is made of."""
    yield from (Path(__file__), ROOT / "Cargo.toml", ROOT / "Cargo.lock")
    for folder in (ROOT / "crates", ROOT / "benches"):
        yield from folder.rglob("*.rs")
        yield from folder.rglob("Cargo.toml")


def profdata() -> tuple[Path, str]:
    """Where the compiler's ``llvm-profdata`` lies if it is installed, and for what it compiles."""
    sysroot = Path(run(["rustc", "--print", "sysroot"]).strip())
    lines = run(["rustc", "--version", "--verbose"]).splitlines()
    host = next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))
    return sysroot / "lib" / "rustlib" / host / "bin" / "llvm-profdata", host


def build(program: Path, tool: Path, host: str) -> None:
    """Compile, train, compile again."""
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        work = Path(folder)
        seen = work / "seen"
        say("1/3: the program that sees what it does")
        trainee = compiled(work / "trainee", f"-Cprofile-generate={seen}", host)
        say("2/3: training")
        for number, words in enumerate(TRAINING):
            out = work / f"out-{number}"
            out.mkdir()
            run([trainee, *words.split(), "--out", out])
            shutil.rmtree(out)
        profile = work / "training.profdata"
        run([tool, "merge", "-o", profile, *sorted(seen.glob("*.profraw"))])
        say("3/3: the program")
        guided = compiled(work / "guided", f"-Cprofile-use={profile}", host)
        shutil.move(guided, program)


def compiled(target: Path, flag: str, host: str) -> Path:
    """The program with a flag of its own; build scripts go without it, for a host is named."""
    flags = f"{os.environ.get('RUSTFLAGS', '')} {flag}".strip()
    words = ["cargo", "build", "--quiet", "--profile", "dist", "--locked", "-p", NAME]
    run([*words, "--target", host, "--target-dir", target], env={**os.environ, "RUSTFLAGS": flags})
    return target / host / "dist" / NAME


def say(words: str) -> None:
    """A line of progress: each of the three takes a minute or two on two cores."""
    print(f"guided {NAME}, {words}", flush=True)


def run(command: Sequence[str | Path], env: dict[str, str] | None = None) -> str:
    """What a command prints.

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


if __name__ == "__main__":
    sys.exit(main())
