"""Counts the data packets that arrived in each half second of an ns-2 trace."""

import sys
from pathlib import Path

HALF = 0.5
DATA = ("DCCP_Data", "DCCP_DataAck")

arrived = [0] * 80
with Path(sys.argv[1]).open(encoding="ascii") as trace:
    for line in trace:
        event, time, _, _, kind, *_ = line.split()
        if event == "r" and kind in DATA and float(time) < len(arrived) * HALF:
            arrived[int(float(time) / HALF)] += 1
print(arrived)
