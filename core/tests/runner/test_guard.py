"""The guard alone: real processes, no mock."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
print(os.getpid(), flush=True)
time.sleep(300)
"""
LEAVES = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], stdout=subprocess.PIPE)
print(child.stdout.readline().decode(), end="", flush=True)
"""
WAITS = LEAVES + "time.sleep(300)"


def _guard(code):
    reading, writing = os.pipe()
    guard = subprocess.Popen(
        [sys.executable, "-m", "xcfg.runner.guard", "--fd", str(reading), "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(reading,),
    )
    os.close(reading)
    return guard, writing


def _gone(pid):
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("code", "expected"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + 9)],
)
def test_the_exit_code_is_the_commands(code, expected):
    guard, writing = _guard(code)
    guard.communicate(timeout=20)
    assert guard.returncode == expected
    os.close(writing)


def test_a_grandchild_with_its_own_session_does_not_outlive_the_command():
    guard, writing = _guard(LEAVES)
    out, err = guard.communicate(timeout=20)
    assert guard.returncode == 0
    assert b"ended 1 processes" in err
    assert not psutil.pid_exists(int(out))
    os.close(writing)


@pytest.mark.parametrize("how", ["pipe", "signal"])
def test_the_tree_ends_with_the_coordinator_or_on_request(how):
    guard, writing = _guard(WAITS)
    pid = int(guard.stdout.readline())
    if how == "pipe":
        os.close(writing)
    else:
        guard.send_signal(signal.SIGTERM)
    assert guard.wait(timeout=20) == 128 + 15
    assert not psutil.pid_exists(pid)
    guard.communicate()
    if how == "signal":
        os.close(writing)


def test_the_command_dies_with_its_guard():
    guard, writing = _guard("import os, time; print(os.getpid(), flush=True); time.sleep(300)")
    pid = int(guard.stdout.readline())
    guard.kill()
    guard.communicate()
    assert _gone(pid)
    os.close(writing)
