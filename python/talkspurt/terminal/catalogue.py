"""Output of ``talkspurt metrics``: the catalogue, or a metric as CSV."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from talkspurt.errors import BadInputError
from talkspurt.metrics.catalogue import ALL, COLUMNS, COMPUTED
from talkspurt.result import finite
from talkspurt.visible import print_json

MOST_BINS = 1_000_000
"""Maximum number of time bins (rows); more are assumed to be a typing error."""


def print_list(*, as_json: bool) -> None:
    """All metrics: recorded ones, and those computed on request."""
    if as_json:
        listed = [{"full_name": one.full_name, **dataclasses.asdict(one)} for one in ALL]
        plain = [{key: finite(value) for key, value in one.items()} for one in listed]
        print_json({"metrics": plain})
        return
    print("Any of them: talkspurt metrics RUN NAME [--flow FLOW | --link LINK]")
    print("(of two with one name the first, or --link's; flows.NAME, links.NAME, gauges.NAME say)")
    print("\nIn every result, by table (docs: Metrics has formulas and sources):")
    for table in ("flows", "links", "gauges"):
        print(f"\n{table}")
        for one in (one for one in COLUMNS if one.table == table):
            unit = "" if one.unit == "1" else f" ({one.unit})"
            print(f"  {one.name:<24} {one.label}{unit}")
    print("\nComputed when asked for")
    print("(P: of a run with --set record.packets=true; letters are those of the study of voice)\n")
    for metric in COMPUTED:
        needs = "P" if metric.needs_packets else " "
        unit = f" ({metric.unit})" if metric.unit not in ("", "1") else ""
        what = f"{metric.y} against {metric.x}" if metric.x else "a number of each flow"
        if metric.of_links:
            what += ", of links"
        print(f"  {metric.study:<2} {needs} {metric.name:<30} {what}{unit}")
        print(f"       {metric.formula}")


def print_metric(
    run: Path,
    name: str,
    flow: str | None,
    link: str | None,
    bin_s: float | None,
    *,
    as_json: bool,
) -> None:
    """One metric of a result."""
    from talkspurt import _core, metrics, store
    from talkspurt.study import Study

    result = store.load(run)
    if isinstance(result, Study):
        raise _core.RunError(f"{run} is a study: name one of the runs in {run}/runs")
    if bin_s is not None and result.duration_s > MOST_BINS * bin_s:
        many = f"{result.duration_s / bin_s:.3g} bins in {result.duration_s:g} s"
        raise BadInputError(f"--bin {bin_s:g}: {many}, expected at most {MOST_BINS:g}")
    table = metrics.compute(result, name, flow, bin_s, link=link)
    one = metrics.metric(name, of_links=link is not None)
    if table.is_empty() and isinstance(one, metrics.Column):
        whose = "no flow of this run has" if flow is None else f"flow {flow!r} has no"
        raise BadInputError(f"{whose} {one.full_name}")
    if as_json:
        print_json(table.to_dicts())
    else:
        sys.stdout.write(table.write_csv())
