import ctypes
import os
import subprocess
import sys

from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


def say(where):
    print(f"print {where}")
    sys.stdout.write(f"stdout {where}\n")
    sys.__stdout__.write(f"original stdout {where}\n")
    os.write(1, f"descriptor {where}\n".encode())
    ctypes.CDLL(None).puts(f"C {where}".encode())
    subprocess.run([sys.executable, "-S", "-c", f"print('child {where}')"], check=True)


say("import")


@hookimpl
def xcfg_scorers():
    say("hook")
    return [ScorerDescriptor(id="prints", summary="talks", target="module:Scorer", roles=(Role.ROLLOUT,))]


@hookimpl
def xcfg_reject_case(case, baseline):
    say("veto")
    return None
