"""Lines with fewer points: every column of pixels has the extremes and the gaps of the whole line."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from talkspurt.figures import decimating


def made(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A line of one kind, of 50 000 points."""
    count = 50_000
    x = np.sort(rng.uniform(3.0, 90.0, count))
    y = rng.normal(size=count).cumsum()
    if kind == "spikes":
        y[rng.integers(0, count, 20)] *= 1e6
    elif kind == "gaps":
        for begin in rng.integers(0, count, 40):
            y[begin : begin + rng.integers(1, 400)] = np.nan
    elif kind == "clusters":
        x = np.sort(np.concatenate([rng.exponential(1e-3, count - 9), rng.uniform(0, 500, 9)]))
    elif kind == "constant":
        y[:] = 4.0
    elif kind == "steps":
        y = np.round(y / 50)
    elif kind == "nothing":
        y[:] = np.nan
    return x, y


def kept(*values: np.ndarray) -> np.ndarray:
    """The places of the points to draw."""
    return decimating.kept(*map(pl.Series, values)).to_numpy().astype(int)


def columns(x: np.ndarray, low: float, high: float) -> np.ndarray:
    place = ((x - low) / (high - low) * decimating.COLUMNS).astype(int)
    return np.minimum(place, decimating.COLUMNS - 1)


@pytest.mark.parametrize("kind", ["spikes", "gaps", "clusters", "constant", "steps", "nothing"])
@pytest.mark.parametrize("seed", range(3))
def test_each_column_has_the_ends_the_extremes_and_the_gaps_of_the_whole_line(kind, seed):
    x, y = made(kind, np.random.default_rng(seed))
    places = kept(x, y)
    assert len(places) < 6 * decimating.COLUMNS
    assert (np.diff(places) > 0).all()
    column, few = columns(x, x[0], x[-1]), columns(x[places], x[0], x[-1])
    assert set(column) == set(few)
    for here in np.unique(column):
        whole, drawn = y[column == here], y[places][few == here]
        assert str(drawn[0]) == str(whole[0])
        assert str(drawn[-1]) == str(whole[-1])
        there, left = whole[~np.isnan(whole)], drawn[~np.isnan(drawn)]
        assert len(there) == 0 or (left.min(), left.max()) == (there.min(), there.max())
        assert np.isnan(drawn).any() == np.isnan(whole).any()
    # Values on both sides of a gap are never joined.
    for a, b in pairwise(places):
        assert np.isnan(y[[a, b]]).any() or not np.isnan(y[a:b]).any()


def test_lines_over_common_times_keep_the_extremes_of_each():
    x = np.linspace(0.0, 10.0, 50_000)
    low, high = np.sin(x), np.cos(x)
    low[31_234], high[44_321] = -9.0, 7.0
    places = kept(x, low, high)
    assert {0, 31_234, 44_321, 49_999} <= set(places.tolist())
    assert len(places) < 6 * decimating.COLUMNS


@pytest.mark.parametrize("count", [0, 1, 2, 4 * decimating.COLUMNS])
def test_few_points_are_all_drawn(count):
    x = np.arange(count, dtype=float)
    assert kept(x, x).tolist() == list(range(count))


def test_null_is_a_gap_as_nan_is():
    x = pl.Series(np.linspace(0.0, 10.0, 50_000))
    y = x.sin()
    holes = pl.Series([20_000 < place < 20_009 or place == 0 for place in range(50_000)])
    null = y.zip_with(~holes, pl.Series([None] * 50_000, dtype=pl.Float64))
    places = decimating.kept(x, null)
    assert {0, 20_001} <= set(places.to_list())
    assert places.equals(decimating.kept(x, null.fill_null(np.nan)))


def test_points_at_one_time_are_all_drawn():
    assert len(kept(np.full(9_000, 2.0), np.arange(9_000.0))) == 9_000
