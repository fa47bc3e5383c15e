"""The seed scripts of each fuzz target, one file per target; each line has a name and hex bytes.

`unpack` writes each script of a target to its own file, as libFuzzer requires. `pack` makes the
target's file from such a folder, for example from the output of `cargo fuzz cmin`.
"""

import sys
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"


def unpack(target: str, folder: Path) -> None:
    """Write the scripts of a target to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in (SEEDS / f"{target}.txt").read_text().splitlines():
        name, _, script = line.partition(" ")
        (folder / name).write_bytes(bytes.fromhex(script))


def pack(target: str, folder: Path) -> None:
    """Replace the scripts of a target with the files of a folder, ordered by name."""
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
