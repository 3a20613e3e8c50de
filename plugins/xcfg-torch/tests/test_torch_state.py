"""The state digest sees every bit that scoring must leave alone."""

from __future__ import annotations

import hashlib

import pytest
import torch

from xcfg_torch.state import state_digest


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16))
        self.register_buffer("scale", torch.tensor(3.0), persistent=False)


def test_by_hand() -> None:
    expected = hashlib.sha256()
    expected.update(b"parameter weight torch.bfloat16 (1, 2);" + bytes([0x80, 0x3F, 0x00, 0x40]))
    expected.update(b"buffer scale torch.float32 ();" + bytes([0, 0, 0x40, 0x40]))
    assert state_digest(_Model()) == expected.hexdigest()


def _weight(model) -> None:
    model.weight.data[0, 1] = torch.nextafter(model.weight.data[0, 1], torch.tensor(9.0, dtype=torch.bfloat16))


def _buffer(model) -> None:
    model.scale.neg_()


def _gradient(model) -> None:
    model.weight.grad = torch.zeros_like(model.weight)


def _dtype(model) -> None:
    model.float()


@pytest.mark.parametrize("change", [_weight, _buffer, _gradient, _dtype])
def test_each_change_is_seen(change) -> None:
    model = _Model()
    before = state_digest(model)
    assert state_digest(model) == before
    change(model)
    assert state_digest(model) != before
