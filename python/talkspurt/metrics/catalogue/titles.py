"""Titles of metrics in terminal tables, which are shorter than the labels of the catalogue.

The tables take their titles from here; an unknown metric is compared with them, so that a user who
asks for what a table shows gets its name.
"""

from __future__ import annotations

OF_RUNS: dict[str, tuple[str, str]] = {
    "flows.concealed_ratio": ("unheard", ""),
    "flows.mouth_to_ear_p50_s": ("mouth-to-ear delay", ""),
    "flows.r_factor": ("R", ""),
    "flows.mos": ("MOS", ""),
    "flows.mos_lost_to_delay": ("lost\u00a0to delay", "MOS lost to delay"),
    "flows.mos_lost_to_loss": ("lost\u00a0to loss", "MOS lost to loss"),
    "flows.mos_lost_to_codec": ("lost\u00a0to codec", "MOS lost to codec"),
    "flows.video_frames": ("frames", ""),
    "flows.video_frames_complete": ("complete", ""),
    "flows.video_frames_late": ("late", ""),
    "flows.frame_delay_p50_s": ("delay p50", "frame delay p50"),
    "flows.frame_delay_p95_s": ("delay p95", "frame delay p95"),
    "flows.frame_delay_max_s": ("longest delay", "longest frame delay"),
    "flows.goodput_bps": ("goodput", ""),
    "flows.delay_p50_s": ("delay p50", "network delay p50"),
    "flows.delay_p95_s": ("delay p95", "network delay p95"),
    "flows.jitter_s": ("jitter", ""),
    "flows.sent_packets": ("sent", "packets sent"),
    "flows.lost_packets": ("lost", "packets lost"),
    "flows.late_packets": ("late", "frames late"),
    "flows.recovered_packets": ("recovered", "frames recovered"),
    "links.rate_bps": ("rate", ""),
    "links.utilisation": ("busy", ""),
    "links.queue_mean_packets": ("queue mean", "mean queue"),
    "links.queue_max_packets": ("queue longest", "longest queue"),
    "links.drops": ("dropped", ""),
}
"""By full name: the title in the tables of a run, and the longer one in the note on columns that
did not fit; empty if it is the same."""

OF_STUDIES: dict[str, str] = {
    "mouth_to_ear_p50_s": "mouth-to-ear delay",
    "concealed_ratio": "unheard",
    "network_loss": "lost",
    "delay_mean_s": "delay mean",
    "delay_p50_s": "delay p50",
    "delay_p95_s": "delay p95",
    "frame_delay_p50_s": "frame delay p50",
    "frame_delay_p95_s": "frame delay p95",
    "frame_delay_max_s": "longest frame delay",
}
"""By name: the titles in the tables of a study that differ from the labels."""

SATISFACTION = ("users", "users' satisfaction")
"""The title of the verdict that ITU-T G.107 Annex B derives from R."""


def shown() -> dict[str, list[str]]:
    """The metrics that each title, in lower case, stands for."""
    found: dict[str, list[str]] = {}
    titles = [(title, full) for full, pair in OF_RUNS.items() for title in pair if title]
    titles += [(title, name) for name, title in OF_STUDIES.items()]
    titles += [(title, "flows.r_factor") for title in SATISFACTION]
    for title, full in titles:
        names = found.setdefault(" ".join(title.lower().split()), [])
        name = full.removeprefix("flows.")
        if name not in names:
            names.append(name)
    return found
