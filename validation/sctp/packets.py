"""A capture of our side in tshark, with its CRC-32c check enabled."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

FIELDS = ("sctp.checksum.status", "_ws.expert.group", "_ws.expert.message", "frame.protocols")
# Groups of expert items that indicate faulty packets: Checksum, Protocol, Malformed.
FAULTS = {0x01000000: "Checksum", 0x09000000: "Protocol", 0x07000000: "Malformed"}


def read(capture: Path, udp_port: int | None = None) -> dict:
    """Counts packets, wrong checksums, and faults."""
    command = ["tshark", "-r", str(capture), "-o", "sctp.checksum:CRC 32c"]
    command += ["-d", f"udp.port=={udp_port},sctp"] if udp_port else []
    command += ["-T", "fields", *(part for name in FIELDS for part in ("-e", name))]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    packets = bad = 0
    faults: Counter[str] = Counter()
    for row in told.splitlines():
        status, groups, messages, protocols = row.split("\t")
        packets += "sctp" in protocols.split(":")
        bad += status != "1"
        for group, message in zip(groups.split(","), messages.split(","), strict=False):
            if group and int(group, 0) in FAULTS:
                faults[f"{FAULTS[int(group, 0)]}: {message}"] += 1
    return {"packets": packets, "bad_checksums": bad, "faults": dict(faults)}
