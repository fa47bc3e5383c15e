"""Saturated cells and probabilities in ns-3: writes ns3.csv and chances.csv.

Needs Debian's `libns3-dev` and g++. `crates/sim/tests/world/cell` compares our cells with them.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = ["applications", "internet", "mobility", "wifi", "network", "stats", "core"]


def program(name: str, folder: Path) -> Path:
    """A program of this folder, linked with ns-3."""
    built = folder / name
    libraries = [f"-lns3-{library}" for library in LIBRARIES]
    source = HERE / f"{name}.cc"
    subprocess.run(["g++", "-O2", "-w", "-std=c++17", source, "-o", built, *libraries], check=True)
    return built


def told(*command: str | Path) -> str:
    """The output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Build and run the programs, and write their output."""
    version = told("dpkg-query", "-W", "-f", "${Version}", "libns3-dev").split("+")[0]
    with tempfile.TemporaryDirectory() as folder:
        chances = told(program("chances", Path(folder)))
        (HERE / "chances.csv").write_text(f"# ns-3 {version}\n{chances}")
        saturated = program("saturated", Path(folder))
        lines = [f"# ns-3 {version}, 10 s each", "stations,detection,rts,goodput_mbps,heard"]
        # A receiver that tries every frame often decodes one of two colliding RTS: at 2 Mbit/s ns-3
        # requires little SNR for 20 bytes. Our model has no such capture: left out.
        for detection, rts in ((1, 0), (1, 1), (0, 0)):
            for stations in (1, 10, 50, 100) if not rts else (1, 10, 50):
                options = {"n": stations, "detection": detection, "rts": 0 if rts else 1_000_000}
                given = [f"--{name}={value}" for name, value in options.items()]
                lines.append(f"{stations},{detection},{rts},{told(saturated, *given).strip()}")
        (HERE / "ns3.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
