"""The scripts kept of each fuzz target, one file a target: in a line, a name and bytes in hex.

`unpack` writes each script of a target to a file of its own, as libFuzzer wants them. `pack` makes
the target's file from such a folder, for example from what `cargo fuzz cmin` left of a corpus.
"""

import sys
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"


def unpack(target: str, folder: Path) -> None:
    """Write the scripts of a target into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in (SEEDS / f"{target}.txt").read_text().splitlines():
        name, _, script = line.partition(" ")
        (folder / name).write_bytes(bytes.fromhex(script))


def pack(target: str, folder: Path) -> None:
    """Replace the scripts of a target by the files of a folder, ordered by name."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    lines = (f"{file.name} {file.read_bytes().hex()}\n" for file in files)
    (SEEDS / f"{target}.txt").write_text("".join(lines))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["unpack", target, folder]:
            unpack(target, Path(folder))
        case ["pack", target, folder]:
            pack(target, Path(folder))
        case _:
            sys.exit("usage: seeds.py unpack|pack TARGET FOLDER")
