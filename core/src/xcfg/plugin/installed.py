"""What an interpreter has installed, as far as results depend on it.

``python -m xcfg.plugin.installed`` reads a question in JSON from standard input and prints the answer, so that one
interpreter can ask another.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from attrs import field, frozen

from xcfg.errors import EnvironmentFault, XcfgError
from xcfg.model.codec import dump_json, load_json, structure
from xcfg.model.json import freeze, tupled

_PATIENCE_S = 120.0


@frozen(kw_only=True)
class Asked:
    """Names of distributions, of import packages of engines, and of packages whose source counts."""

    distributions: tuple[str, ...] = field(default=(), converter=tupled)
    engines: tuple[str, ...] = field(default=(), converter=tupled)
    packages: tuple[str, ...] = field(default=(), converter=tupled)


@frozen(kw_only=True)
class Installed:
    """Version of Python, kind of machine, versions by name (empty: not installed), SHA-256 of each package's source."""

    python: str
    machine: str
    distributions: Mapping[str, str] = field(converter=freeze)
    engine: Mapping[str, str] = field(converter=freeze)
    code: Mapping[str, str] = field(converter=freeze)


def installed(asked: Asked, interpreter: str = "") -> Installed:
    """What ``interpreter`` has, by default this one. Raises EnvironmentFault where it does not answer."""
    return _there(interpreter, asked) if interpreter else _here(asked)


def _here(asked: Asked) -> Installed:
    return Installed(
        python=platform.python_version(),
        machine=platform.machine(),
        distributions={name: _version(name) for name in asked.distributions},
        engine={name: _engine_version(name) for name in asked.engines},
        code={name: _source_digest(name) for name in asked.packages},
    )


@cache
def _there(interpreter: str, asked: Asked) -> Installed:
    answer = ask_interpreter(interpreter, "xcfg.plugin.installed", dump_json(asked))
    return structure(load_json(answer, where=interpreter), Installed)


def ask_interpreter(interpreter: str, module: str, question: str = "", *arguments: str) -> str:
    """What ``python -m MODULE`` prints there. Raises EnvironmentFault where it cannot be run or fails."""
    command = [interpreter, "-m", module, *arguments]
    hint = "give the path of a Python in which xcfg and the plugins of this side are installed"
    try:
        done = subprocess.run(command, input=question, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"this interpreter does not answer: {error}", where=interpreter, hint=hint) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise EnvironmentFault(f"{module} fails in this interpreter: {last}", where=interpreter, hint=hint)
    return done.stdout


@cache
def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _engine_version(package: str) -> str:
    """Distributions and versions behind an import name; empty where it is not installed."""
    names = {package} if find_spec(package) is not None else set()
    try:
        return ", ".join(f"{name} {metadata.version(name)}" for name in names)
    except metadata.PackageNotFoundError:  # the distribution has another name than the package: a slow search
        names = set(metadata.packages_distributions().get(package, ()))
    return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(names))


@cache
def _source_digest(package: str) -> str:
    """SHA-256 over the Python files of a package, found without importing it."""
    spec = find_spec(package)
    if spec is None:
        return ""
    roots = [Path(place) for place in spec.submodule_search_locations or ()]
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    if not roots and spec.origin:
        files = [Path(spec.origin)]
    state = hashlib.sha256()
    for path in files:
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def main() -> int:
    """Answer one question."""
    try:
        asked = structure(load_json(sys.stdin.read(), where="standard input"), Asked)
    except XcfgError as error:
        print(error, file=sys.stderr)
        return 2
    sys.stdout.write(dump_json(_here(asked)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
