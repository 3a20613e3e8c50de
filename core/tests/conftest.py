import site
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def other_python(tmp_path_factory) -> str:
    """Another interpreter, that of a fresh environment which borrows the packages of this one."""
    folder = tmp_path_factory.mktemp("other")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    own = [path for path in site.getsitepackages() if Path(path).is_dir()]
    (packages / "borrowed.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in own))
    return str(folder / "bin" / "python")
