"""Records the studies' ns-2 values: ``python -m talkspurt.reproduce.record NAME ...``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from talkspurt.reproduce.formulas import module
from talkspurt.reproduce.ns2 import Script, measured
from talkspurt.reproduce.study_file import FILES


def record(study: str) -> Path:
    """Run ns-2 and write its values next to the script."""
    values = measured(study)
    beyond = getattr(module(study), "ns2_beyond", None)
    document = {
        "origin": f"{_version()}, {study}.tcl",
        "date": datetime.now(UTC).date().isoformat(),
        "script_sha256": Script(study).sha256,
        "values": {k: round(v, 9) if isinstance(v, float) else v for k, v in values.items()},
        **({"beyond": beyond(Script(study))} if beyond else {}),
    }
    file = Path(str(FILES / f"{study}.ns2.json"))
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def _version() -> str:
    query = ["dpkg-query", "-W", "-f=${Version}", "ns2"]
    if shutil.which(query[0]) is None:
        return "ns-2"
    found = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return f"ns-2.35 (Debian ns2 {found})" if found else "ns-2"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(record(name))
