"""Scenarios to start from: each runs where `talkspurt init` writes it, and nothing is overwritten."""

import contextlib
import itertools
import json
import re
import shlex
import shutil
import subprocess
import tomllib
import wave
from html import unescape
from pathlib import Path
from typing import get_args

import pytest

import talkspurt as package
from command import output, refused, succeed, talkspurt
from talkspurt import _commands, _core, templates
from talkspurt.metrics.catalogue import COLUMNS, column
from talkspurt.report import single
from talkspurt.report import study as study_report
from talkspurt.results.result import Study

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "talkspurt"
NAMES = get_args(templates.Name)
SCHEMA = "talkspurt.schema.json"
SPEECH = "sense-and-sensibility.wav"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all templates."""
    folder = tmp_path_factory.mktemp("templates")
    for name in NAMES:
        templates.write(name, folder)
    return folder


def suggestions(text):
    """The commands that a template's comments suggest."""
    joined = re.sub(r" \\\n# +", " ", text)
    return [shlex.split(line) for line in re.findall(r"^#   (talkspurt run .*)$", joined, re.M)]


def test_every_template_has_a_name_and_a_question():
    assert sorted(NAMES) == sorted(file.stem for file in (PACKAGE / "templates").glob("*.toml"))
    titles = templates.titles()
    assert list(titles) == list(NAMES) and len(NAMES) >= 12
    assert all(title.endswith("?") and len(title) < 60 for title in titles.values())


@pytest.fixture(scope="module", params=NAMES)
def ran(place, request, tmp_path_factory):
    """One run of each setting of a template, and the page of its report."""
    file = place / f"{request.param}.toml"
    assert len(package.read(file).plan) <= 20, "a template is there within seconds"
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        found = package.run(file, set={"replications.count": 1}, study=None)
    if isinstance(found, Study):
        return found, study_report.html(found, drawn=())
    return found, single.html(found, drawn=())


def test_a_template_runs_where_it_was_written(ran):
    runs = getattr(ran[0], "runs", [ran[0]])
    assert all(run.flows["received_packets"].min() > 0 for run in runs)


ANCHORS = {one.anchor: one.name for one in COLUMNS if not one.of_links}


def rows_of_flows(html):
    """Of each row of a table of flows: its settings and flow, and its texts by metric."""
    for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
        if "difference from" in table:
            continue
        head, body = table.split("<tbody>")
        heads = re.findall(r'<th scope="col".*?>(.*?)</th>', head, re.DOTALL)
        anchors = [re.search(r'href="#(.*?)"', one) for one in heads]
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
            cells = re.findall(r"<(th|td).*?>(.*?)</(?:th|td)>", row, re.DOTALL)
            texts = [re.sub(r"<small.*?</small>|<[^>]*>", "", text).strip() for _, text in cells]
            names = [text for (tag, _), text in zip(cells, texts, strict=True) if tag == "th"]
            found = {
                ANCHORS[anchor[1]]: text
                for anchor, text in zip(anchors, texts, strict=False)
                if anchor and anchor[1] in ANCHORS
            }
            if found:
                yield tuple(map(unescape, names)), found


def units(of):
    """The rows of the flows table by settings and flow or group."""
    found = {}
    for run in getattr(of, "runs", [of]):
        for row in run.flows.to_dicts():
            for unit in {row["name"], row["group"] or row["name"]}:
                found.setdefault((*run.settings.values(), unit), []).append(row)
    return found


def number(text):
    return float(text.replace("\u202f", ""))


def test_the_answer_of_a_template_is_what_its_report_shows(ran):
    """Tables lack no value that is there, and the first sentence has numbers of its tables."""
    of, html = ran
    known, shown = units(of), {}
    for (*settings, flow), texts in rows_of_flows(html):
        key = (*settings, re.sub(r" × \d+$", "", flow))
        for name, text in texts.items():
            assert not re.search(r"nan|none|inf|undefined", text, re.IGNORECASE), (key, name, text)
            values = [row[name] for row in known[key] if row[name] is not None]
            assert (text == "–") == (not values), (key, name, text)
            assert shown.setdefault((key, name), text) == text
    answer = of.answer
    first = answer.sentences[0]
    said = set()
    for question in answer.questions:
        axes = dict(question["settings"])
        for option in question["options"]:
            if question["axis"]:
                axes[question["axis"]] = option["label"]
            settings = (axes[axis.name] for axis in getattr(of, "axes", ()))
            key = (*settings, question["flow"] or option["label"])
            for measure, cell in zip(question["measures"], option["cells"], strict=True):
                text = cell["text"] if cell else "–"
                assert shown[key, measure] == text
                said.add((column(measure).label, text))
    if not answer.questions:
        said = {(column(name).label, text) for (_, name), text in shown.items()}
    # What is in parentheses is a cause or a range, what is before the colon a setting.
    for label in (one["label"] for question in answer.questions for one in question["options"]):
        first = re.sub(rf"(?<![\w.]){re.escape(label)}(?![\w.])", "option", first)
    if "settings of the other axes" in first:
        counts = re.findall(r" in (?:all )?(\d+)", first.split("other axes: ")[1])
        assert sum(map(int, counts)) == len(answer.questions)
        return
    first = re.sub(r"\(.*?\)", "", first.partition(": ")[2])
    labels = sorted({label for label, _ in said}, key=len, reverse=True)
    values = re.findall(rf"({'|'.join(labels)})\u00a0([\d\u202f.]+\d)", first)
    assert values and set(values) <= said
    for text in re.findall(r"(?:; |: |, | and )([\d\u202f.]+\d)\u00a0[^;]*? (?:less|more)", first):
        digits = len(text.partition(".")[2])
        known = [(label, number(text)) for label, text in said if text != "–"]
        pairs = itertools.combinations(known, 2)
        differences = [abs(a - b) for (one, a), (other, b) in pairs if one == other]
        assert any(abs(it - number(text)) < 1.01 * 10**-digits for it in differences), text


@pytest.mark.parametrize("name", NAMES)
def test_a_template_teaches_and_suggests_changes_that_work(place, name):
    text = (place / f"{name}.toml").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == f"#:schema ./{SCHEMA}"
    assert "# --- What to change next" in text
    assert sum(line.lstrip().startswith("#") for line in lines) >= 12
    assert max(map(len, lines)) <= 130
    commands = suggestions(text)
    assert commands[0][:3] == ["talkspurt", "run", f"{name}.toml"] and len(commands) >= 2
    for words in commands:
        sets = [value for option, value in itertools.pairwise(words) if option == "--set"]
        sets = [value for value in sets if "my-voice.wav" not in value]
        assert package.read(place / words[2], set=sets).plan


def test_init_writes_the_first_call_with_all_it_needs(tmp_path):
    done = succeed("init", cwd=tmp_path)
    files = ["first-call.toml", SPEECH, SCHEMA]
    assert done.stdout.splitlines() == [*files, "", "Next: talkspurt run first-call.toml"]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(files)
    assert json.loads((tmp_path / SCHEMA).read_text(encoding="utf-8")) == json.loads(_core.schema())
    succeed("run", "first-call.toml", "--no-report", cwd=tmp_path)
    assert (tmp_path / "runs/first-call/audio/call.received.wav").exists()


def test_the_same_again_changes_nothing_and_works(tmp_path):
    templates.write("cellular", tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert talkspurt("init", "cellular", cwd=tmp_path).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("changed", ["first-call.toml", SPEECH, SCHEMA])
def test_nothing_is_overwritten_without_being_asked(tmp_path, changed):
    (tmp_path / changed).write_text("mine", encoding="utf-8")
    done = refused("init", cwd=tmp_path)
    assert done.stderr.startswith(
        f"talkspurt: {changed}: already there with other content; nothing"
    )
    assert [file.name for file in tmp_path.iterdir()] == [changed]
    assert (tmp_path / changed).read_text(encoding="utf-8") == "mine"
    succeed("init", "--overwrite", cwd=tmp_path)
    call = (tmp_path / "first-call.toml").read_text(encoding="utf-8")
    assert call == templates.text("first-call")


def test_a_link_to_nowhere_is_not_followed(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/wifi.toml").symlink_to(tmp_path / "elsewhere")
    done = refused("init", "wifi", "here", cwd=tmp_path)
    assert "here/wifi.toml: already there" in done.stderr
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("my study.toml", "my study.toml"),
        ("new/deep", "new/deep/leo.toml"),
        ("new/a.toml", "new/a.toml"),
    ],
)
def test_a_path_is_a_file_or_a_folder(tmp_path, path, file):
    done = succeed("init", "leo", path, cwd=tmp_path)
    assert (tmp_path / file).exists() and (tmp_path / file).with_name(SPEECH).exists()
    assert done.stdout.splitlines()[-1] == f"Next: talkspurt run {shlex.quote(file)}"


def test_a_folder_that_cannot_be_made_is_an_error_of_the_user(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = talkspurt("init", "leo", "file/deep", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "file/deep" in done.stderr


@pytest.mark.parametrize("command", ["init", "examples"])
def test_an_unknown_template_is_answered_with_the_nearest_and_the_list(command, tmp_path):
    done = talkspurt(command, "frist-call", cwd=tmp_path, env={"COLUMNS": "300"})
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "did you mean first-call?" in done.stderr
    assert ", ".join(NAMES) in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("init", "--list"), ("examples",)])
def test_templates_are_listed_with_their_questions(words, tmp_path):
    done = talkspurt(*words, cwd=tmp_path)
    lines = done.stdout.splitlines()
    for line, (name, title) in zip(lines, templates.titles().items(), strict=False):
        assert line.split(maxsplit=1) == [name, title] and len(line) <= 80
    assert not list(tmp_path.iterdir())


def test_an_example_is_printed_as_init_writes_it(tmp_path):
    done = talkspurt("examples", "queues", cwd=tmp_path)
    assert done.stdout == templates.text("queues")


def test_the_schema_is_printed_or_written(tmp_path):
    printed = talkspurt("schema", cwd=tmp_path).stdout
    assert talkspurt("schema", "--out", "s.json", cwd=tmp_path).returncode == 0
    assert (tmp_path / "s.json").read_text(encoding="utf-8").rstrip() == printed.rstrip()
    failed = talkspurt("schema", "--out", "missing/s.json", cwd=tmp_path)
    assert failed.returncode == 2 and "missing/s.json" in failed.stderr


def test_templates_in_the_repository_name_the_schema_there():
    for name in NAMES:
        file = PACKAGE / "templates" / f"{name}.toml"
        path = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("#:schema ")
        assert file.parent.joinpath(path).samefile(ROOT / "schema" / "scenario.schema.json")


def test_the_package_holds_templates_and_speech_with_its_notice():
    """Maturin puts all files below the package into the wheel, except those that git ignores."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["maturin"]["python-source"] == "python"
    assert "exclude" not in project["tool"]["maturin"]
    needed = ["speech/README.md", f"speech/{SPEECH}", "templates/cellular.csv"]
    needed += [f"templates/{name}.toml" for name in NAMES]
    assert all((PACKAGE / file).is_file() for file in needed)
    with wave.open(str(PACKAGE / "speech" / SPEECH)) as speech:
        assert speech.getnframes() / speech.getframerate() > 10
    files = [str(PACKAGE / file) for file in needed]
    ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True)
    assert not ignored.stdout


def test_the_folder_of_the_repository_is_that_of_the_package():
    assert (ROOT / "speech").samefile(PACKAGE / "speech")


def completed(words):
    """What bash offers for the last word."""
    script = _commands.app.generate_completion(shell="bash")
    script += f"\nCOMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
    script += '_talkspurt; printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = output("bash", "-c", script)
    return done.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_commands_templates_and_options():
    assert completed(["talkspurt", "in"]) == ["init"]
    assert completed(["talkspurt", "init", ""]) == list(NAMES)
    assert completed(["talkspurt", "examples", "co"]) == ["compare", "controllers"]
    assert completed(["talkspurt", "run", "--no"]) == ["--no-report"]


@pytest.mark.parametrize(
    ("shell", "start"),
    [
        ("bash", "complete -F"),
        ("zsh", "_cyclopts_talkspurt() {"),
        ("fish", "complete -c talkspurt"),
    ],
)
def test_completion_is_printed_for_each_shell(shell, start):
    done = talkspurt("completion", shell)
    assert done.returncode == 0 and start in done.stdout
    assert all(name in done.stdout for name in NAMES)
    if shell == "zsh":  # the function's file has its name, or zsh does not call it
        assert "_cyclopts_talkspurt" in talkspurt("completion", "--help").stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


def test_completion_for_another_shell_names_the_supported_ones():
    done = refused("completion", "tcsh", env={"COLUMNS": "200"})
    assert "expected one of bash, zsh, fish" in done.stderr
