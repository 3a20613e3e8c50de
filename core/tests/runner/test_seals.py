import errno
import resource
import subprocess
import sys

import pytest

from xcfg.errors import ArtifactError, EnvironmentFault
from xcfg.runner.durable import replace, replace_changed, room, write_new
from xcfg.runner.seal import seal, verify


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "attempt"
    (made / "logs").mkdir(parents=True)
    (made / "identity.json").write_bytes(b"{}")
    (made / "logs" / "out.log").write_bytes(b"hello")
    seal(made, "side/attempt-0001")
    return made


def test_an_untouched_folder_holds_and_gives_what_lies_in_it(folder):
    assert verify(folder, "side/attempt-0001") == {"identity.json": b"{}"}


def test_each_change_is_named(folder):
    (folder / "logs" / "out.log").write_bytes(b"hellp")
    with pytest.raises(ArtifactError, match=r"out\.log.*not what was sealed"):
        verify(folder, "side/attempt-0001")
    (folder / "logs" / "out.log").unlink()
    with pytest.raises(ArtifactError, match=r"out\.log.*missing"):
        verify(folder, "side/attempt-0001")


def test_an_added_file_is_named(folder):
    (folder / "extra").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"extra.*added"):
        verify(folder, "side/attempt-0001")


@pytest.mark.parametrize("target", ["identity.json", "logs", "nowhere"])
def test_an_added_link_is_named_whatever_it_points_to(folder, target):
    (folder / "logs" / "link").symlink_to(folder / target)
    with pytest.raises(ArtifactError, match=r"logs/link.*added"):
        verify(folder, "side/attempt-0001")


def test_a_payload_that_became_a_folder_is_missing(folder):
    (folder / "identity.json").unlink()
    (folder / "identity.json").mkdir()
    with pytest.raises(ArtifactError, match=r"identity\.json.*missing"):
        verify(folder, "side/attempt-0001")


def test_a_payload_that_became_a_link_to_nothing_is_named(folder):
    (folder / "identity.json").unlink()
    (folder / "identity.json").symlink_to(folder / "nowhere")
    with pytest.raises(ArtifactError, match=r"identity\.json.*link"):
        verify(folder, "side/attempt-0001")


def test_a_seal_of_another_attempt_does_not_hold(folder):
    with pytest.raises(ArtifactError, match="attempt-0002"):
        verify(folder, "side/attempt-0002")


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema": "xcfg.seal/1"}', b'{"a": 1, "a": 2}'])
def test_a_broken_seal_does_not_hold(folder, content):
    (folder / "COMPLETE").write_bytes(content)
    with pytest.raises(ArtifactError, match="COMPLETE"):
        verify(folder, "side/attempt-0001")


def test_a_new_file_never_replaces_another(tmp_path):
    write_new(tmp_path / "a", b"one")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"


def test_a_file_is_replaced_only_where_it_differs(tmp_path):
    path = tmp_path / "a"
    replace_changed(path, b"one")
    before = path.stat().st_ino
    replace_changed(path, b"one")
    assert path.stat().st_ino == before
    replace_changed(path, b"two")
    assert path.stat().st_ino != before and path.read_bytes() == b"two"


def test_no_room_leaves_the_former_file_and_no_half_one(tmp_path):
    """In a process whose files may not exceed 100 bytes: the kernel's own refusal, no mock."""
    (tmp_path / "a").write_bytes(b"former")
    code = (
        "import sys\nfrom pathlib import Path\nfrom xcfg.runner.durable import replace, write_new\n"
        "from xcfg.errors import EnvironmentFault\n"
        f"path = Path({str(tmp_path / 'a')!r})\n"
        "for write, where in ((replace, path), (write_new, path.with_name('b'))):\n"
        "    try: write(where, b'0' * 1000)\n"
        "    except EnvironmentFault as error: print(error)\n"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # noqa: E731
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, preexec_fn=limit, check=True
    )
    assert done.stdout.count("no space left") == 2, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"former"


def test_other_errors_are_not_taken_for_no_room(tmp_path):
    with pytest.raises(FileNotFoundError):
        replace(tmp_path / "absent" / "a", b"")
    with pytest.raises(EnvironmentFault, match="somewhere"), room(tmp_path / "somewhere"):
        raise OSError(errno.ENOSPC, "full")
