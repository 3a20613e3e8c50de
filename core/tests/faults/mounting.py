"""Whether a test may mount a file system of its own."""

import os
import shutil
import subprocess
from functools import cache


@cache
def can_mount() -> bool:
    """In a mount namespace of its own: root may, and others where the kernel lets users have namespaces."""
    if shutil.which("unshare") is None:
        return False
    prefix = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    return subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0
