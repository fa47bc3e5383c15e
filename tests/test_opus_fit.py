"""The fit of Opus under validation/listening: its equations, and the tables that its README prints."""

import re
import sys
from pathlib import Path

import pytest

LISTENING = Path(__file__).parent.parent / "validation" / "listening"


@pytest.fixture(scope="module")
def opus_fit():
    sys.path.insert(0, str(LISTENING))
    try:
        import opus_fit

        yield opus_fit
    finally:
        sys.path.remove(str(LISTENING))


def test_ratings_are_those_of_the_table_of_g_107(opus_fit):
    # Table B.1 of G.107, which prints 4.03 for 4.024.
    for r, mos in ((90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)):
        assert opus_fit.mos(r) == pytest.approx(mos, abs=0.007)
        assert opus_fit.rating(opus_fit.mos(r)) == pytest.approx(r)
    # PESQ's best score is above the curve, and its worst below.
    assert opus_fit.rating(4.5486) == 100 and opus_fit.rating(0.9) == 6.5


def test_impairments_under_loss_are_those_of_g_107(opus_fit):
    # G.107 §7.5 by hand: 10 + 85 × 4 / (4 + 16).
    assert opus_fit.effective(10, 16, 4) == pytest.approx(27)
    impairments = {loss: opus_fit.effective(10, 16, loss) for loss in (1, 2, 5, 10)}
    bpl, error = opus_fit.robustness(10, impairments)
    assert bpl == pytest.approx(16, rel=1e-3) and error < 1e-2
    impairments[10] += 6
    bpl, error = opus_fit.robustness(10, impairments)
    assert 10 < bpl < 16 and error > 1


def test_a_line_recovers_what_it_was_given(opus_fit):
    raw = {("a", 0): 0.0, ("b", 0): 10.0, ("c", 0): 30.0}
    known = {key: 1.5 * value - 2 for key, value in raw.items()}
    assert opus_fit.line(known, raw) == pytest.approx((1.5, -2))
    # One of them 8 above the line of the others: left out, it is missed by exactly 8.
    known["c", 0] += 8
    assert opus_fit.without_each(known, raw)["c", 0] == pytest.approx(known["c", 0] - 8)


def test_the_readme_has_the_tables_of_the_data(opus_fit, capsys):
    tables = opus_fit.tables(opus_fit.read())
    printed = capsys.readouterr().out + tables
    text = (LISTENING / "README.md").read_text(encoding="utf-8")
    missing = [line for line in printed.splitlines() if line not in text]
    assert not missing, "\n".join(missing)
    assert "the criterion of 5 is not met" in printed


def test_the_page_has_the_scores_of_the_data(opus_fit):
    scores = opus_fit.read()
    page = (LISTENING.parents[1] / "docs" / "listening.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) kbit/s, (narrow|wide)band \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) == 10
    conditions = (("", 0), ("", 5), (" FEC", 5), ("", 10), (" FEC", 10))
    for rate, band, cells in rows:
        for (fec, loss), cell in zip(conditions, cells.split(" | "), strict=True):
            plain = f"Opus {rate} {band[0]}b"
            mean = scores[plain + fec, loss].mean()
            if cell == "–":
                assert mean == scores[plain, loss].mean()
            else:
                assert cell == f"{mean:.2f}", (plain, fec, loss)
