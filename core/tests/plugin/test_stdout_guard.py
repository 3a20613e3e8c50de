from __future__ import annotations

import subprocess
import sys
import threading

from xcfg.plugin.stdout import stdout_to_stderr


def test_overlapping_threads_give_standard_output_back(capfd):
    inside, leave = threading.Event(), threading.Event()

    def first():
        with stdout_to_stderr():
            inside.set()
            leave.wait(10)
            print("first")

    def second():
        inside.wait(10)
        leave.set()
        with stdout_to_stderr():
            print("second")

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("after")
    out, err = capfd.readouterr()
    assert out == "after\n"
    assert err == "first\nsecond\n"


def test_it_may_be_nested(capfd):
    with stdout_to_stderr(), stdout_to_stderr():
        print("inner")
    print("outer")
    assert capfd.readouterr() == ("outer\n", "inner\n")


def test_a_process_without_standard_output_is_no_error():
    code = (
        "import os, sys\nos.close(1)\n"
        "from xcfg.plugin.stdout import stdout_to_stderr\n"
        "with stdout_to_stderr():\n    print('kept')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "kept\n")
