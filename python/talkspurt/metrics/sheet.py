"""The sheet of a run or a study: counts, sizes, rates, delays and loss of every flow.

The same quantities as TraceGraph's sheet of an ns-2 trace, for each setting of a study; means over
the replications.
"""

from __future__ import annotations

import math

import polars as pl

from talkspurt.results.study_data import StudyData

NODES = ("nodes", "senders", "receivers")
"""Nodes of the network, and those that sent and received packets with payload."""
MEASURES = (
    "generated_packets",
    "sent_packets",
    "received_packets",
    "lost_packets",
    "delivery_ratio",
    "network_loss",
    "sent_bytes",
    "received_bytes",
    "throughput_bps",
    "goodput_bps",
    "delay_min_s",
    "delay_mean_s",
    "delay_max_s",
    "jitter_s",
)
SIZES = ("packet_size_min", "packet_size_mean", "packet_size_max")
"""Computed if every run has a packet table."""


def measures(study: StudyData) -> tuple[str, ...]:
    """The measures of a study's sheet: packet sizes only with packet tables."""
    packets = all(run.recorded.get("packets") for run in study.runs)
    return (*MEASURES, *SIZES) if packets else MEASURES


def nodes(study: StudyData) -> list[dict[str, int]]:
    """Of each run: its nodes, and those that sent and received packets with payload."""
    return [
        {
            "nodes": len(run.topology["nodes"]),
            # A capture at one point does not tell how much was sent, but what arrived was sent.
            "senders": len(
                {
                    row["from"]
                    for row in rows
                    if row["received_packets" if row["sent_packets"] is None else "sent_packets"]
                }
            ),
            "receivers": len({row["to"] for row in rows if row["received_packets"]}),
        }
        for run, rows in study.by_run("flows")
    ]


def sheet(study: StudyData) -> pl.DataFrame:
    """One row per setting and flow: the axes, ``flow``, ``members``, ``NODES`` and the measures.

    The flows of a ``count`` share a row with their mean.
    """
    axes = [axis.column for axis in study.axes]
    summary = study.summary(measures(study))
    table = summary.pivot(
        "measure", index=[*axes, "flow", "members"], values="mean", maintain_order=True
    )
    found: dict[tuple[float | str, ...], list[dict[str, int]]] = {}
    for run, counted in zip(study.runs, nodes(study), strict=True):
        key = tuple(study._columns(run.settings).values())
        found.setdefault(key, []).append(counted)
    schema = {name: summary.schema[name] for name in axes}
    counts = pl.DataFrame(
        [
            {
                **dict(zip(axes, key, strict=True)),
                **{name: math.fsum(one[name] for one in each) / len(each) for name in NODES},
            }
            for key, each in found.items()
        ],
        schema={**schema, **dict.fromkeys(NODES, pl.Float64)},
    )
    how = {"on": axes, "how": "left"} if axes else {"how": "cross"}
    return table.join(counts, maintain_order="left", **how).select(
        *axes, "flow", "members", *NODES, *measures(study)
    )
