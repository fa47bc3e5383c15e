"""What shipped scenarios and exports must not lose: windows of shorter runs, and nodes' colours."""

import tomllib
from pathlib import Path

import pytest

import talkspurt
from command import succeed
from texts import put

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_a_shorter_run_of_a_shipped_scenario_is_asked_for_with_one_word(file):
    whole = talkspurt.read(file).plan
    seconds = float(tomllib.loads(file.read_text(encoding="utf-8"))["duration"].strip("s"))
    assert talkspurt.read(file, set={"duration": f"{seconds * 0.9:g}s"}).plan.title == whole.title


def test_nam_is_told_the_colours_of_nodes(folder, tmp_path):
    text = (folder / "small.toml").read_text(encoding="utf-8")
    text = text.replace("speech.wav", str(folder / "speech.wav"))
    colour = '[nodes.east]\ncolour = "#12ab34"\n\n[flows.call]\n'
    file = put(tmp_path / "case.toml", text.replace("[flows.call]\n", colour))
    succeed("export", file, "--to", "nam", "--out", "out", cwd=tmp_path)
    (trace,) = (path for path in (tmp_path / "out").iterdir() if path.suffix == ".nam")
    nodes = [line for line in trace.read_text().splitlines() if line.startswith("n -t * ")]
    east = [line for line in nodes if line.endswith("-c #12ab34 -i #12ab34")]
    assert len(nodes) == 2 and len(east) == 1
    assert sum(line.endswith("-c black -i black") for line in nodes) == 1
