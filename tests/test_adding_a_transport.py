"""The page on adding a transport, followed in a copy of the sources: what it adds is measured.

Compiles most crates once more, so it runs only with TALKSPURT_ADD_A_TRANSPORT=1 (`make test-adding`).
"""

import os
import re
import shutil

import pytest

from command import output
from pages import ROOT

pytestmark = pytest.mark.skipif(
    "TALKSPURT_ADD_A_TRANSPORT" not in os.environ,
    reason="compiles for minutes: set TALKSPURT_ADD_A_TRANSPORT=1",
)
PAGE = (ROOT / "docs" / "adding-a-transport.md").read_text(encoding="utf-8")
NAMED = """
#[test]
fn the_transport_of_the_page_has_a_name() {
    assert!(Transport::all().any(|it| it.name() == "spaced"));
}
"""


def insert(text, place, added):
    """The text with lines before a place that occurs once."""
    assert text.count(place) == 1, place
    return text.replace(place, f"{added}\n{place}")


def follow(root):
    """Do what the page says in the folder of a repository."""
    module = re.search(r"```rust\n(.*?)\n// The test of this page", PAGE, re.DOTALL)[1]
    proto, app = root / "crates/proto/src", root / "crates/app/src/transport.rs"
    (proto / "spaced.rs").write_text(module.replace("talkspurt_proto", "crate"))
    line, tables = re.findall(
        r"```text\n(.*?)```", PAGE.split("## 2.")[1].split("## 3.")[0], re.DOTALL
    )
    library = proto / "lib.rs"
    library.write_text(insert(library.read_text(), "pub mod tcp;", line.strip()))
    use, row = tables.strip("\n").split("\n\n")
    text = insert(app.read_text(), "use talkspurt_proto::tcp::{self, Tcp};", use)
    app.write_text(insert(text, "    /// A stack supplied by a Rust program.", row))


def test_the_transport_of_the_page_is_measured_over_loopback():
    # Always the same folder: cargo compiles what has changed since the last time.
    copy = ROOT / "target" / "adding-a-transport"
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("crates", "benches", "docs", ".cargo"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("Cargo.toml", "Cargo.lock", "clippy.toml"):
        shutil.copy(ROOT / name, copy)
    for name in ("scenarios", "schema", "speech", ".venv"):
        (copy / name).symlink_to(ROOT / name)
    follow(copy)
    with (copy / "crates/measure/tests/loopback.rs").open("a") as tests:
        tests.write(NAMED)
    words = ["cargo", "test", "--package", "talkspurt-measure", "--test", "loopback", "_transport"]
    target = {"CARGO_TARGET_DIR": str(ROOT / "target")}
    assert "2 passed" in output(*words, cwd=copy, env=target, timeout=None)
