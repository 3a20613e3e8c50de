"""``xcfg --help`` and ``plugins list`` stay light: what they import is a matter of a list, not of a stopwatch."""

import subprocess
import sys

PLUGINS = ("torch", "fsdp", "vllm", "ray", "slurm", "kernels", "te")
HEAVY = {"numpy", "zarr", "torch", "rich", "attrs", "attr", "cattrs", "pluggy", "vllm", "transformers", "xarray"}
ENGINES = {"torch", "vllm", "ray", "submitit", *(f"xcfg_{name}" for name in PLUGINS)}


def modules_after(*arguments: str) -> set[str]:
    program = (
        "import sys\n"
        "from xcfg.cli.entry import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as leaving:\n    assert leaving.code == 0, leaving.code\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return {line.split(".")[0] for line in done.stderr.splitlines()}


def test_help_imports_nothing_heavy() -> None:
    assert not modules_after("--help") & HEAVY


def test_listing_plugins_imports_no_plugin_and_no_engine() -> None:
    loaded = modules_after("plugins", "list", "--json")
    assert not loaded & ENGINES


def test_doctor_imports_no_plugin_and_no_engine() -> None:
    loaded = modules_after("doctor", "--json")
    assert not loaded & ENGINES
