"""What a user finds without a browser: examples that run, the manual, completion, env."""

import getpass
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from canvas import cli

COMMANDS = Path(sys.executable).parent


def run(*command, **options):
    """What `command` prints on standard output, with this environment's canvas in the PATH."""
    path = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": path},
        **options,
    )
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


def subcommands():
    """The subcommands of the C command and those of Python, as the help lists them."""
    core, python = run("canvas", "help").split("With the Python package")
    return [re.findall(r"^  (\w+) ", part, re.M) for part in (core, python)]


CORE, PYTHON = subcommands()


def example(subcommand):
    said = run("canvas", "help", subcommand)
    assert said.startswith("usage: canvas " + subcommand), said
    return said.partition("\nExample:\n")[2]


def test_the_help_lists_the_subcommands_that_there_are():
    assert sorted(PYTHON) == sorted(cli.SUBCOMMANDS)
    assert len(CORE) >= 12


@pytest.mark.parametrize("subcommand", CORE)
def test_an_example_of_the_core_runs(subcommand, tmp_path):
    assert f"canvas {subcommand}" in example(subcommand)
    printed = run("bash", "-c", example(subcommand), cwd=tmp_path)
    assert printed or subcommand == "completion"


@pytest.mark.parametrize("subcommand", PYTHON)
def test_an_example_of_python_is_understood(subcommand):
    words = shlex.split(example(subcommand).partition(">")[0])
    assert words[:2] == ["canvas", subcommand]
    cli.subcommand(subcommand).parser().parse_args(words[2:])


def test_the_manual_is_right_roff(tmp_path):
    page = tmp_path / "canvas.1"
    page.write_text(run("canvas", "help", "--man"))
    checks = [["groff", "-man", "-ww", "-z", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "error"]]
    found = [check for check in checks if shutil.which(check[0])]
    if not found:
        pytest.skip("neither groff nor mandoc is installed")
    for check in found:
        assert run(*check, page) == ""


# What is typed before TAB, and every way to go on.
TYPED = {
    "canvas so": ["solve"],
    "canvas solve --b": ["--budget"],
    "canvas show --as t": ["text", "torch", "tvm"],
    "canvas help tri": ["trials"],
    "canvas trials --fo": ["--format"],
    "canvas trials --format ": ["csv", "json", "table"],
    "canvas check k.k": ["k.kernel"],
    "canvas trials k.k": ["k.kernel"],
}
ASK = {
    # What readline does with a word that the function leaves to it is `compgen -f`.
    "bash": """eval "$(canvas completion bash)"
        IFS=' ' read -ra COMP_WORDS <<<"$1"
        [[ $1 != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        complete -p canvas | grep -q -e '-o default -F _canvas' && _canvas canvas
        [[ ${COMPREPLY[0]} ]] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[-1]}"))
        printf '%s\\n' "${COMPREPLY[@]}" """,
    "fish": "canvas completion fish | source; complete -C $argv[1]",
    # A terminal of its own; the list of all ways, as `compadd` gets them.
    "zsh": """autoload -U compinit && compinit -u -D && eval "$(canvas completion zsh)"
        _describe() { print -rl -- ${found%%:*} }
        _files() { print -rl -- ${words[CURRENT]}*(N) }
        words=("${(@s: :)1}"); CURRENT=$#words
        _canvas""",
}


@pytest.mark.parametrize("shell", ASK)
def test_completion_in_a_real_shell(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "k.kernel").touch()
    (tmp_path / "other").touch()
    no_start = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    name = ["ask"] if shell != "fish" else []
    for typed, expected in TYPED.items():
        said = run(shell, *no_start, "-c", ASK[shell], *name, typed, cwd=tmp_path)
        assert sorted(line.partition("\t")[0] for line in said.splitlines()) == expected, typed


def test_env_says_what_matters_and_no_names(tmp_path):
    said = run("canvas", "env")
    for fact in (
        "canvas",
        "python",
        "torch",
        "sqlite",
        "compiler",
        "processor",
        "cores",
        "memory",
    ):
        assert re.search(rf"^{fact} +\S", said, re.M), fact
    assert run("canvas", "--version").split()[1] in said
    for name in (platform.node(), getpass.getuser(), str(Path.home()), str(COMMANDS)):
        assert not re.search(rf"\b{re.escape(name)}\b", said), name


def test_env_where_little_is_installed(tmp_path):
    """No torch, a compiler that is none."""
    hide = "import sys; sys.modules['torch'] = None; from canvas.cli import main; main(['env'])"
    environment = {**os.environ, "CC": "no-such-compiler -m32"}
    done = subprocess.run(
        [sys.executable, "-c", hide], env=environment, capture_output=True, text=True
    )
    assert re.search(r"^torch +not installed$", done.stdout, re.M), done.stderr
    assert re.search(r"^compiler +none$", done.stdout, re.M)
