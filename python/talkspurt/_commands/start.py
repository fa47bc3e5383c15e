"""Commands to begin with: templates, the schema and completions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

from talkspurt import _core, templates
from talkspurt._commands.options import Flag, Out, app
from talkspurt._text.escaping import visible


def init(
    template: templates.Name = "first-call",
    path: Path = Path(),
    /,
    *,
    list: Flag = False,
    force: Flag = False,
) -> None:
    """Write a commented scenario to start from, with its recording and the JSON Schema.

    Parameters
    ----------
    template
        The scenario; --list shows the question that each one answers.
    path
        Folder, or a file that ends in .toml; default: TEMPLATE.toml in the current folder.
    list
        Only list the templates.
    force
        Replace existing files.
    """
    if list:
        examples()
        return
    written = templates.write(template, path, force=force)
    for file in written:
        print(visible(str(file)))
    print()
    print(visible(f"Next: talkspurt run {shlex.quote(str(written[0]))}"))


def examples(name: templates.Name | None = None, /) -> None:
    """List the scenarios that `talkspurt init` can write, or print one.

    Parameters
    ----------
    name
        The scenario to print; without it, all are listed.
    """
    if name is not None:
        print(templates.text(name).rstrip())
        return
    titles = templates.titles()
    width = max(map(len, titles))
    for each, title in titles.items():
        print(f"{each:<{width}}  {title}")
    print("\n`talkspurt init NAME` writes one into the current folder, ready to run.")


def schema(*, out: Out = None) -> None:
    """Print the JSON Schema of a scenario, for editors.

    Taplo, and Even Better TOML for VS Code, complete and check a scenario with the first line
    "#:schema ./talkspurt.schema.json", a path from the scenario's folder. `talkspurt init` writes
    the line and the file.

    Parameters
    ----------
    out
        File to write or replace; default: standard output.
    """
    if out is None:
        print(_core.schema().rstrip())
    else:
        out.write_text(_core.schema(), encoding="utf-8")


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands, options and templates in a shell.

    For bash, with the folder made first:
    talkspurt completion bash > ~/.local/share/bash-completion/completions/talkspurt

    For zsh, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc:
    talkspurt completion zsh > ~/.zfunc/_cyclopts_talkspurt

    For fish:
    talkspurt completion fish > ~/.config/fish/completions/talkspurt.fish

    Parameters
    ----------
    shell
        The shell that reads the script.
    """
    print(app.generate_completion(shell=shell).rstrip())
