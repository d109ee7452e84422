"""Finds or creates the Python environments of the two compared builds, each from a wheel, an interpreter, an environment or a git
revision."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "target" / "against"
FLAGS = ["-P", "-s"]
"""Interpreter flags of workers, so that the working directory and the user's packages do not hide those of the environment."""

DESCRIBE = """
import json, platform, numpy, pliant
about = pliant.build_info()
print(json.dumps({"pliant": about["version"], "profile": about["profile"], "file": pliant.__file__,
                  "python": platform.python_version(), "numpy": numpy.__version__}))
"""


class BuildError(Exception):
    """Raised for a build that cannot be found, created or used. The message is one line."""


@dataclass(frozen=True)
class Build:
    """One of the two compared builds: a Python interpreter whose environment has Pliant
    installed.
    """

    given: str
    python: Path
    about: dict[str, Any]

    def describe(self) -> str:
        """Returns the build as the command line names it, with its versions, in one line of text."""
        a = self.about
        return f"{self.given} (pliant {a['pliant']}, Python {a['python']}, NumPy {a['numpy']})"


def environment(**extra: str) -> dict[str, str]:
    """Returns the environment variables with which the worker processes run."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")} | extra


def last_line(text: str) -> str:
    """Returns the last non-empty line of an output. For Python and pip, this line contains the
    error.
    """
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")


def run_checked(command: list[str | Path], what: str, cwd: str | Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Runs a command and returns its standard output. Raises `BuildError` with the failed step if
    the command fails.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env)
    except OSError as error:
        raise BuildError(f"{what}: {error.strerror}") from error
    if done.returncode:
        raise BuildError(f"{what}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def describe(given: str, python: Path) -> Build:
    """Imports Pliant with an interpreter and returns this build with its versions. Raises
    `BuildError` for a debug build.
    """
    text = run_checked([python, *FLAGS, "-c", DESCRIBE], f"{python}: cannot import pliant", env=environment(), cwd="/")
    try:
        about = json.loads(last_line(text))
    except json.JSONDecodeError:
        raise BuildError(f"{given}: {python} is not a Python interpreter") from None
    if about["profile"] != "release":
        raise BuildError(f"{given}: this is a {about['profile']} build, but times of release builds are compared")
    return Build(given, python, about)


def install(wheel: Path, folder: Path) -> Path:
    """Returns the interpreter of a virtual environment in which a wheel is installed. Creates the
    environment if it does not exist.
    """
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        print(f"installing {wheel.name} into {folder}", file=sys.stderr)
        run_checked([sys.executable, "-m", "venv", "--clear", folder], f"cannot make the environment {folder}")
        run_checked([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], f"cannot install {wheel}")
        complete.touch()
    return python


def from_wheel(wheel: Path) -> Path:
    """Returns the interpreter of an environment with this wheel. Environments are cached by the
    contents of the wheel.
    """
    try:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise BuildError(f"{wheel}: {error.strerror}") from error
    return install(wheel, CACHE / "wheels" / f"{digest}-{sysconfig.get_python_version()}")


def git(*words: str | Path) -> str:
    """Runs a git command in this repository and returns its output."""
    return run_checked(["git", *words], f"git {words[0]}").strip()


def maturin() -> list[str | Path]:
    """Returns the `maturin` command that builds wheels: the one next to this interpreter, or the
    one on the path.
    """
    beside = Path(sys.executable).with_name("maturin")
    found = beside if beside.exists() else shutil.which("maturin")
    if found is None:
        raise BuildError("building a revision needs maturin: pip install 'maturin>=1.9,<2'")
    return [found]


def from_commit(commit: str) -> Path:
    """Builds a commit in a temporary worktree and returns the interpreter of an environment with
    the resulting wheel. The worktree, whose build takes gigabytes, is removed afterwards.
    """
    folder = CACHE / commit[:12]
    source, wheels = folder / "source", folder / "wheel"
    if not list(wheels.glob("*.whl")):
        build = maturin()
        git("worktree", "prune")
        if not source.exists():
            git("worktree", "add", "--quiet", "--detach", source, commit)
        print(f"building {commit[:12]} in {source}: this takes minutes", file=sys.stderr)
        command = [*build, "build", "--release", "--quiet", "--interpreter", sys.executable, "--out", folder / "built"]
        target = environment(CARGO_TARGET_DIR=str(source / "target"))
        run_checked(command, f"cannot build {commit[:12]}", cwd=source, env=target)
        (folder / "built").rename(wheels)
        git("worktree", "remove", "--force", source)
    (wheel,) = wheels.glob("*.whl")
    return install(wheel, folder / f"env-{sysconfig.get_python_version()}")


def find_build(given: str) -> Build:
    """Returns the build that a command-line argument names: a wheel, an interpreter, an environment
    or a git revision.
    """
    path = Path(given).expanduser()
    if path.suffix == ".whl":
        return describe(given, from_wheel(path))
    if path.is_dir() and (path / "bin" / "python").exists():
        path = path / "bin" / "python"
    if path.is_file():
        # Not resolved: an environment's interpreter is a symbolic link, whose location identifies
        # the environment.
        return describe(given, path.absolute())
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        if path.is_dir():
            raise BuildError(f"{given}: a folder without bin/python is not an environment")
        raise BuildError(f"{given}: no such file, and no revision of this repository")
    return describe(given, from_commit(found.stdout.strip()))
