"""Comments and pages are plain technical English, and comments fit the screen."""

import re
from pathlib import Path

import pytest

from command import process

ROOT = Path(__file__).parent.parent
AVOIDED = (
    "absurd", "anew", "befall", "befalls", "befell", "dice", "foretold", "hangs on", "is told",
    "knows of no", "lest", "looks on", "memory without end", "mishap", "mishaps", "naught",
    "stands in the", "thence", "to be told", "whence",
)  # fmt: skip
"""Words that readers stumbled over, and that the field has other words for."""
MAX_COMMENT = 112
"""Characters of a comment's line in Rust; rustfmt does not wrap them."""
TEXTS = ("crates", "python", "docs", "scenarios", "benches", "*.md")


def texts(*endings: str) -> list[Path]:
    """Files under version control, tests and generated ones apart."""
    command = ["git", "ls-files", *TEXTS]
    listed = process(*command, cwd=ROOT)
    if listed.returncode:
        pytest.skip("no checkout of git")
    names = [name for name in listed.stdout.splitlines() if "/tests/" not in name]
    return [ROOT / name for name in names if name.endswith(endings)]


def test_words_that_readers_stumble_over_are_avoided():
    avoided = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in texts(".rs", ".py", ".md", ".toml")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in avoided.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_comments_fit_the_screen():
    long = [
        f"{file.relative_to(ROOT)}:{number}: {len(line)}"
        for file in texts(".rs")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip().startswith("//") and len(line) > MAX_COMMENT
    ]
    assert not long, "\n".join(long)
