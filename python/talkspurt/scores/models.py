"""Runs the models. Each is imported and loaded once, on first use, and runs on one core.

PLCMOS draws fifteen listeners at random; here they are always the same, so that equal sound has
equal scores. Values of the models depend on their versions and, in the last digits, on the machine.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt._lazy import np
from talkspurt.errors import MissingExtraError
from talkspurt.scores.kinds import WIDEBAND_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGES = {
    "pesq": "pesq",
    "visqol": "visqol-python",
    "ai_edge_litert": "visqol-python[lattice]",
    "speechmos": "speechmos",
    "onnxruntime": "onnxruntime",
}
REMEDY = "pip install 'talkspurt[scores]'"
_one = threading.Lock()
"""numba's threads belong to one caller at a time: a second one would end the process."""
LISTENERS = 15
"""Listeners that PLCMOS averages over, as its authors do."""


def check() -> None:
    """Raise MissingExtraError unless all packages of the extra are installed."""
    missing = [package for module, package in PACKAGES.items() if not _is_there(module)]
    if missing:
        raise MissingExtraError(f"scores need {', '.join(missing)}, not installed: {REMEDY}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: blocked by None in sys.modules
        return False


def score(model: str, sent: NDArray[np.int16], received: NDArray[np.int16], rate: int) -> float:
    """A model's score of aligned signals.

    Raises:
        ValueError: if the model cannot judge them, with the reason.
        MissingExtraError: if it is not installed.
    """
    check()
    found = _MODELS[model](sent, received, rate)
    if found != found:
        raise ValueError("no number")
    return found


def _pesq(sent: NDArray[np.int16], received: NDArray[np.int16], rate: int) -> float:
    from pesq import PesqError, pesq

    band, wanted = ("nb", 8_000) if rate < WIDEBAND_HZ else ("wb", WIDEBAND_HZ)
    try:
        return float(pesq(wanted, _at(sent, rate, wanted), _at(received, rate, wanted), band))
    except PesqError as error:
        said = error.args[0] if error.args else error
        words = said.decode() if isinstance(said, bytes) else str(said)
        raise ValueError(words.strip().rstrip(".") or "it failed") from error


def _visqol(sent: NDArray[np.int16], received: NDArray[np.int16], rate: int) -> float:
    reference, degraded = (_at(side, rate, WIDEBAND_HZ) for side in (sent, received))
    with _one, _on_one_core():
        return float(_visqol_api().measure_from_arrays(reference, degraded, WIDEBAND_HZ).moslqo)


@functools.cache
def _visqol_api() -> Any:
    try:
        from visqol import VisqolApi
    except RuntimeError:
        # numba finds no directory for compiled code that can be written. Without it, ViSQOL takes
        # nine times as long, and its values are the same.
        kept = {name: sys.modules.pop(name) for name in [*sys.modules] if name == "numba"}
        sys.modules["numba"] = None  # type: ignore[assignment]
        try:
            from visqol import VisqolApi
        finally:
            del sys.modules["numba"]
            sys.modules.update(kept)
    api = VisqolApi()
    with _quiet():
        api.create(mode="speech", use_lattice_model=True)
    return api


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    """If ViSQOL uses numba, on one core."""
    _visqol_api()
    from visqol.numba_accel import has_numba

    if not has_numba():
        yield
        return
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _plcmos(sent: NDArray[np.int16], received: NDArray[np.int16], rate: int) -> float:
    features, session, listeners = _plcmos_session()
    spectra = features(_at(received, rate, WIDEBAND_HZ)).astype(np.float32)
    spectra = spectra[np.newaxis, np.newaxis]
    heard = (
        session.run(None, {"degraded_audio": spectra, "rater_embed": one})[0] for one in listeners
    )
    return float(np.mean([np.asarray(one).item() for one in heard]))


@functools.cache
def _plcmos_session() -> tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], Any, Any]:
    import onnxruntime
    import speechmos
    from speechmos.plcmos import PLCMOS

    # The class's own session would take every core.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    weights = Path(speechmos.__file__).parent / "plcmos_models" / "plcmos_v2.onnx"
    session = onnxruntime.InferenceSession(
        str(weights), options, providers=["CPUExecutionProvider"]
    )
    listeners = np.random.default_rng(1).normal(size=(LISTENERS, 1, 64)).astype(np.float32)
    return PLCMOS.__new__(PLCMOS).stft_transform, session, listeners


_MODELS: dict[str, Callable[[NDArray[np.int16], NDArray[np.int16], int], float]] = {
    "pesq": _pesq,
    "visqol": _visqol,
    "plcmos": _plcmos,
}


def _at(samples: NDArray[np.int16], rate: int, wanted: int) -> NDArray[np.float64]:
    """NDArray[np.int16] at another rate, from −1 to 1."""
    from scipy.signal import resample_poly

    plain = samples.astype(np.float64) / 32768
    if rate == wanted:
        return plain
    common = gcd(rate, wanted)
    found: NDArray[np.float64] = np.clip(
        resample_poly(plain, wanted // common, rate // common), -1, 1
    )
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard what a library's C code prints on standard error while it is loaded."""
    sys.stderr.flush()
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        try:
            kept = os.dup(2)
        except OSError:  # closed
            yield
            return
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
