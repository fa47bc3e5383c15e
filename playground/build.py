"""Builds the playground: a folder of static files, and the same page in one file.

``python playground/build.py MODULE MODELS SITE`` writes ``SITE/playground/`` and
``SITE/talkspurt.html``. MODELS is the module with all of libopus, which the page loads for
scenarios that need it; the file has none. Charts, player and style are those of the report.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path

import numpy as np

from talkspurt import _core
from talkspurt.report.page import asset, script_safe

HERE = Path(__file__).parent
ROOT = HERE.parent
TEMPLATES = ROOT / "python" / "talkspurt" / "templates"
STYLES = ("vendor/uPlot.min.css", "report.css", "charts.css", "topology.css", "animation.css")
SPEECH = ROOT / "speech" / "sense-and-sensibility.wav"
FOLDERS = (".", "networks", "topologies", "questions")
"""Of the scenarios."""
LEFT_OUT = {"sensitivity"}
"""Scenarios with a design, which the module cannot sample."""
POLICY = (
    "default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; "
    "style-src 'unsafe-inline' {style}; img-src data:; media-src blob:; worker-src {worker}; "
    "connect-src {connect}; base-uri 'none'; "
    "form-action 'none'"
)


def scenarios() -> list[dict[str, str]]:
    """The templates and the scenarios, each with its title, path and text."""
    found = []
    for folder in (TEMPLATES, *(ROOT / "scenarios" / name for name in FOLDERS)):
        prefix = "templates" if folder == TEMPLATES else folder.relative_to(ROOT).as_posix()
        files = sorted(
            folder.glob("*.toml"), key=lambda file: (file.stem != "first-call", file.stem)
        )
        for file in files:
            text = file.read_text(encoding="utf-8")
            if file.stem not in LEFT_OUT:
                title = tomllib.loads(text).get("title", file.stem)
                found.append({"path": f"/{prefix}/{file.name}", "title": title, "text": text})
    return found


def data() -> bytes:
    """What the page knows beside the engine: the length of a JSON document, it, and files."""
    files = {
        "/speech/sense-and-sensibility.wav": SPEECH,
        "/templates/sense-and-sensibility.wav": SPEECH,
        "/templates/cellular.csv": TEMPLATES / "cellular.csv",
        **{f"/traces/{file.name}": file for file in (ROOT / "traces").glob("*.csv")},
        **{f"/traces/{file.name}": file for file in (ROOT / "traces").glob("*.pcapng")},
    }
    # A file that has two paths is in the page once.
    sources = list(dict.fromkeys(files.values()))
    contents = [it.read_bytes() for it in sources]
    known = {
        "scenarios": scenarios(),
        "contents": [
            {"bytes": len(content), "folded": it.suffix == ".wav"}
            for it, content in zip(sources, contents, strict=True)
        ],
        "files": {path: sources.index(file) for path, file in files.items()},
        "schema": json.loads(_core.schema()),
    }
    document = json.dumps(known, separators=(",", ":"), ensure_ascii=False).encode()
    parts = [
        folded(content) if it.suffix == ".wav" else content
        for it, content in zip(sources, contents, strict=True)
    ]
    return b"".join((len(document).to_bytes(4, "little"), document, *parts))


def folded(wave: bytes) -> bytes:
    """Words of 16 bits as differences of differences, low bytes first, which compress better."""
    words = np.frombuffer(wave[: len(wave) // 2 * 2], "<u2")
    steps = np.diff(np.diff(words, prepend=np.uint16(0)), prepend=np.uint16(0)).astype("<u2")
    planes = steps.view(np.uint8).reshape(-1, 2).T
    return planes.tobytes() + wave[len(wave) // 2 * 2 :]


def scripts() -> dict[str, tuple[str, str]]:
    """The scripts of the page by name, the first to begin first: their type and text."""
    return {
        "engine.js": ("text/javascript", (HERE / "engine.js").read_text("utf-8")),
        "uplot.js": ("text/javascript", asset("vendor/uPlot.iife.min.js")),
        "editor.js": ("text/javascript", (HERE / "vendor" / "editor.js").read_text("utf-8")),
        "markdown.js": ("text/javascript", (HERE / "vendor" / "markdown.js").read_text("utf-8")),
        "charts.js": ("module", asset("charts.js")),
        "player.js": ("module", asset("player.js")),
        "animation.js": ("module", asset("animation.js")),
        "results.js": ("module", (HERE / "results.js").read_text("utf-8")),
        "page.js": ("module", (HERE / "page.js").read_text("utf-8")),
    }


def worker() -> str:
    """The script of the worker."""
    return "".join((HERE / name).read_text("utf-8") for name in ("vendor/tables.js", "worker.js"))


def licences() -> str:
    """The licences of the parts of others in the scripts."""
    parts = (HERE / "vendor" / "LICENSES").read_text("utf-8")
    return f"uPlot\n\n{asset('vendor/uPlot.LICENSE')}\n{parts}"


def page(**parts: str) -> str:
    """The page with these parts."""
    html = (HERE / "page.html").read_text("utf-8")
    known = {"VERSION": _core.version(), **parts}
    return re.sub("@([A-Z]+)@", lambda found: known[found[1]], html)


def style() -> str:
    """The style of the page."""
    return "".join(map(asset, STYLES)) + (HERE / "page.css").read_text("utf-8")


def one_file(engine: bytes, known: bytes) -> str:
    """The page with all that it needs inside, which opens from disk."""
    texts = {name: script_safe(text) for name, (_, text) in scripts().items()}
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts.values()]

    def inert(name: str, kind: str, text: str) -> str:
        return f'<script type="{kind}" id="{name}">{text}</script>'

    policy = POLICY.format(
        # A worker of a blob inherits the policy, and its script is checked against worker-src.
        scripts=" ".join(f"'sha256-{found.decode()}'" for found in hashes),
        style="", worker="blob:", connect="'none'",
    )  # fmt: skip
    return page(
        POLICY=policy,
        STYLES=f"<style>{style()}</style>",
        DATA="\n".join(
            (
                inert("data", "text/plain", base64.b64encode(known).decode()),
                inert("engine", "text/plain", base64.b64encode(engine).decode()),
                inert("worker", "text/plain", script_safe(worker())),
                inert("licences", "text/plain", script_safe(licences())),
            )
        ),
        SCRIPTS="\n".join(
            f'<script type="{kind}">{texts[name]}</script>' for name, (kind, _) in scripts().items()
        ),
    )


def write(module: Path, models: Path, site: Path) -> None:
    """Write both forms of the page."""
    engine, modelled, known = (
        gzip.compress(it, 9, mtime=0) for it in (module.read_bytes(), models.read_bytes(), data())
    )
    folder = site / "playground"
    folder.mkdir(parents=True, exist_ok=True)
    policy = POLICY.format(scripts="'self'", style="'self'", worker="'self'", connect="'self'")
    files = {
        "index.html": page(
            POLICY=policy,
            STYLES='<link rel="stylesheet" href="page.css">',
            DATA="",
            SCRIPTS="\n".join(
                f'<script type="{kind}" src="{name}"></script>'
                for name, (kind, _) in scripts().items()
            ),
        ),
        "page.css": style(),
        "worker.js": worker(),
        "LICENSES": licences(),
        **{name: text for name, (_, text) in scripts().items()},
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "data.gz").write_bytes(known)
    (folder / "engine.wasm.gz").write_bytes(engine)
    (folder / "models.wasm.gz").write_bytes(modelled)
    (site / "talkspurt.html").write_text(one_file(engine, known), encoding="utf-8")


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:4]))
