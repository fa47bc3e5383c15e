"""Points of designs in the unit cube, sampled by scipy.stats.qmc."""

from __future__ import annotations


def unit_cube(kind: str, samples: int, dimensions: int, seed: int) -> list[list[float]]:
    """Points with coordinates in 0 to 1: ``latin_hypercube``, or a scrambled ``sobol`` sequence.

    Equal arguments give equal points: numpy's PCG64 and scipy's integer scrambling do not depend on
    the machine.
    """
    import numpy as np
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    if kind == "sobol":
        # 64 bits: with the default of 30, points would repeat digits of the range.
        cube = qmc.Sobol(dimensions, scramble=True, bits=64, rng=rng).random(samples)
    else:
        cube = qmc.LatinHypercube(dimensions, rng=rng).random(samples)
    points: list[list[float]] = cube.tolist()
    return points
