"""Commands in real time report all errors of their input at once."""

import json
import os
import subprocess
import sys
import time

import pytest

import talkspurt
from command import refused, succeed
from talkspurt.emulating import namespaces
from talkspurt.errors import BadInputError
from test_emulate import NETWORK, real

SECRET = {"TALKSPURT_SECRET": "a secret of these tests"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "serve --listen x --max-rate x --max-duration 0s --max-sessions 0 --media-ports 9-3",
            ["--listen x", "--max-rate", "--max-duration 0s", "--max-sessions 0",
             "--media-ports 9-3"],
        ),
        (
            "measure h:x --transport x --rate x --for x --packet 1 --mtu 1",
            ["h:x", "--transport x", "--rate", "--for", "--packet 1", "--mtu 1"],
        ),
        (
            "measure h --traffic talkspurts --codec x --for 0s",
            ['source.codec: unknown word "x"', "--for 0s"],
        ),
        ("measure h --traffic bulk --for 2h", ["bulk over UDP has no rate", "--for 2h"]),
        (
            "call h:x --heard none/x.wav --codec x --transport x --for 0s --mtu 1",
            ["h:x", "--heard none/x.wav", "codec x", "--transport x", "--for 0s", "--mtu 1",
             "what is said"],
        ),
        (
            "answer --calls 0 --listen x --media-ports 9-3",
            ["--calls 0", "--listen x", "--media-ports 9-3", "what is said", "what is heard"],
        ),
    ],
)  # fmt: skip
def test_all_wrong_options_are_told_at_once_and_before_a_connection(tmp_path, words, said):
    done = refused(*words.split(), env=SECRET, cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert [it for it in said if it not in line] == []
    assert line.count("bulk over UDP") <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "0s", "--at", "laptop", "--", "true"), "emulate: --for 0s: expected a time"),
        (("--for", "soon", "--at", "laptop", "--", "true"), "emulate: --for soon: expected a time"),
        (("two.toml", "--at", "laptop", "--", "true"), "emulate: two.toml: expected one scenario"),
    ],
)
def test_what_emulate_does_not_understand_is_told(tmp_path, words, said):
    (tmp_path / "one.toml").write_text(NETWORK)
    done = refused("emulate", "one.toml", *words, cwd=tmp_path)
    assert said in done.stderr


def test_a_user_behind_sudo_who_may_not_read_python_is_told(monkeypatch, tmp_path):
    user = namespaces.User("judge", os.getuid(), os.getgid(), [], str(tmp_path))
    for name in ("geteuid", "setgroups", "setegid", "seteuid"):
        monkeypatch.setattr(os, name, lambda *_: 0)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(BadInputError, match=r"acts as judge, who may not read .*python"):
        namespaces.act_as(user)


@real
def test_a_command_that_cannot_be_started_does_not_delay_the_end():
    with talkspurt.Emulation(NETWORK, ["laptop"]) as network:
        for node, words in (("nowhere", ["true"]), ("laptop", []), ("laptop", "true")):
            with pytest.raises(BadInputError):
                network.start(node, words)
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert network.result.manifest["real_time"]["commands"] == []
    with pytest.raises(BadInputError, match="does not execute"):
        network.start("laptop", ["true"])


@real
def test_variables_and_arguments_are_as_long_as_the_system_permits():
    long = "x" * 100_000
    script = "import os, sys; print(sum(map(len, os.environ.values())) + sum(map(len, sys.argv)))"
    with (
        talkspurt.Emulation(NETWORK, ["laptop"]) as network,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat,
    ):
        env = {f"V{number}": long for number in range(4)}
        words = [sys.executable, "-I", "-S", "-c", script, *[long] * 4]
        assert network.start("laptop", words, env=env, stdout=cat.stdin).wait(10) == 0
        said, _ = cat.communicate()
    assert int(said) >= 800_000


@real
def test_words_that_are_not_utf_8_do_not_cost_the_result(tmp_path):
    (tmp_path / "one.toml").write_text(NETWORK)
    options = ("--no-report", "--out", "out", "--for", "2s")
    succeed("emulate", "one.toml", *options, "--at", "laptop", "--", "echo", b"caf\xe9",
                   cwd=tmp_path, errors="replace")  # fmt: skip
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["real_time"]["commands"][0]["command"] == ["echo", "caf\ufffd"]
