"""The figures of plots.md, from the study that it shows: ``python docs/images/plots.py``."""

import re
from pathlib import Path

import talkspurt
from talkspurt import figures

DOCS = Path(__file__).parent.parent
FIGURES = {
    "bars": {"measure": "mos"},
    "several": {"measure": ["MOS", "Unheard", "Delay mean"], "size": (16 / 2.54, 18 / 2.54)},
    "time": {"measure": "goodput_bps", "time": True},
    "cdf": {"measure": "delay_over_time", "kind": "cdf"},
}

if __name__ == "__main__":
    page = (DOCS / "plots.md").read_text(encoding="utf-8")
    scenario = re.search(r'title="study.toml"\n(.*?)```', page, re.DOTALL)
    study = talkspurt.run(scenario[1], study=True)
    for name, options in FIGURES.items():
        measure = options.pop("measure")
        figure = study.figure(measure, flow="call", **options)
        figures.style.set_title(figure, "The call" if name == "several" else None)
        (DOCS / "images" / f"plots-{name}.png").write_bytes(figures.png(figure))
