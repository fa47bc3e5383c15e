"""The recordings in the package: their format, level and provenance."""

import hashlib
import wave
from pathlib import Path

import numpy as np
import pytest

import talkspurt

ROOT = Path(__file__).parents[1]
FOLDER = Path(talkspurt.__file__).parent / "speech"
FILES = sorted(FOLDER.glob("*.wav"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def make(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "validation" / "speech"))
    import make

    return make


def test_there_are_women_and_men_and_three_languages():
    rows = [line.split(" | ") for line in README.splitlines() if line.startswith("| `")]
    people = [(row[1], row[2]) for row in rows if len(row) == 6]
    assert len(people) == len(FILES) == 6
    assert {speaker for speaker, _ in people} == {"man", "woman"}
    assert len({language for _, language in people}) >= 3
    assert sum(file.stat().st_size for file in FILES) < 4e6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_has_its_format_and_notice(file, make):
    with wave.open(str(file)) as source:
        assert (source.getnchannels(), source.getsampwidth(), source.getframerate()) == (
            1,
            2,
            16_000,
        )
        assert 9 <= source.getnframes() / 16_000 <= 15
    (row,) = [
        line
        for line in README.splitlines()
        if line.startswith(f"| `{file.name}` | ") and "dBov" in line
    ]
    assert hashlib.sha256(file.read_bytes()).hexdigest() in row
    level, _ = make.active_level(make.decode(file), 16_000)
    assert f"{level:.1f} dBov".replace("-", "−") in row


def test_the_active_level_of_noise_is_its_power(make):
    noise = np.random.default_rng(1).normal(0, 0.05, 8 * 16_000)
    level, activity = make.active_level(noise, 16_000)
    assert level == pytest.approx(20 * np.log10(0.05), abs=0.1)
    assert activity == pytest.approx(1, abs=0.01)
    # P.56: a pause counts as active for the hangover of 0.2 s, and while the envelope decays.
    noise.reshape(4, 2, 16_000)[:, 1] *= 1e-4
    level, activity = make.active_level(noise, 16_000)
    assert 0.6 <= activity <= 0.68
    assert level == pytest.approx(20 * np.log10(0.05) + 10 * np.log10(0.5 / activity), abs=0.1)
