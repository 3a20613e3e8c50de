"""One thread unless a test asks for more: two that fight for a busy core take longer than one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def threads():
    """Sets the number of torch's threads; one at first, and afterwards as before."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch.set_num_threads
    torch.set_num_threads(before)
