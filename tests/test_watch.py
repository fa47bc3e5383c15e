"""``talkspurt run --watch``: again after each change, with errors in between, until Ctrl-C."""

import os
import signal
import subprocess
import threading

from command import start
from texts import UDP, cbr, flow_text, link_text, put, scenario_text


def scenario(seed):
    link = link_text("l", "a>b", "1Mbit/s", "20ms", 50)
    beat = flow_text("cbr", "a>b", UDP, cbr("64kbit/s", "160B"))
    return scenario_text("Watched", "1s", link, beat, seed=seed)


def test_a_changed_scenario_runs_again(tmp_path):
    file = put(tmp_path / "watched.toml", scenario(seed=1))
    words = ("run", file.name, "--watch", "--no-report")
    process = start(*words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    stuck = threading.Timer(60, process.kill)
    stuck.start()

    def until_waiting():
        said = []
        for line in process.stderr:
            if "waiting for a change of watched.toml" in line:
                return "".join(said)
            said.append(line)
        raise AssertionError("".join(said))

    def seed():
        return (tmp_path / "runs/watched/scenario.toml").read_text().count("seed = 2")

    def change(text):
        # At once, as editors save: what is written in two steps can be two changes. A change within
        # the resolution of the file system's clock is one, too.
        later = file.stat().st_mtime_ns + 10_000_000
        saved = tmp_path / "saved"
        saved.write_text(text)
        os.utime(saved, ns=(later, later))
        saved.replace(file)

    until_waiting()
    assert seed() == 0
    change(scenario(seed=-1))
    assert "seed" in until_waiting()
    assert seed() == 0, "the last good result stays"
    change(scenario(seed=2))
    until_waiting()
    assert seed() == 1
    process.send_signal(signal.SIGINT)
    assert "runs/watched is written" in process.stderr.read()
    assert process.wait() == 130
    process.stderr.close()
    stuck.cancel()
