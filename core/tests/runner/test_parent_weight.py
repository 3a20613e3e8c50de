import subprocess
import sys


def test_the_parent_imports_no_engine_and_stays_small():
    code = (
        "import sys\nimport xcfg.runner.execute\n"
        "found = sorted({'torch', 'vllm', 'transformers'} & set(sys.modules))\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM:'))\n"
        "print(int(peak.split()[1]) * 1024, found)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    size, _, modules = out.partition(" ")
    assert modules.strip() == "[]"
    assert int(size) < 300 * 10**6


def test_the_guard_is_light():
    code = (
        "import sys, xcfg.runner.guard; print(sorted({'numpy', 'attrs', 'cattrs', 'safetensors'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
