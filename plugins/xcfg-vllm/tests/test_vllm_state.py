"""The state digest sees every bit that scoring must leave alone, packed weights included."""

from __future__ import annotations

import hashlib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg_vllm.state_digest import state_digest  # noqa: E402


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16))
        self.register_buffer("offset", torch.tensor(3.0))


def test_by_hand() -> None:
    expected = hashlib.sha256()
    expected.update(b"weight torch.bfloat16 (1, 2);" + bytes([0x80, 0x3F, 0x00, 0x40]))
    expected.update(b"offset torch.float32 ();" + bytes([0, 0, 0x40, 0x40]))
    found = state_digest(_Model())
    assert found["sha256"] == expected.hexdigest()
    assert found["covers"] == {"parameters": 1, "buffers": 1, "packed": 0, "probed": 0}
    assert found["uncovered"] == []


class _Emptied(torch.nn.Module):
    """A linear layer as vLLM leaves it on a CPU: no weight, and a function that has it."""

    def __init__(self, linear=None, width=3) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(0))
        self.cpu_linear = linear
        self.input_size_per_partition = width


def _packed(weight):
    def linear(rows, _weight, bias):
        return rows @ weight.T

    return linear


class _Opaque:
    """Holds its weight where no closure shows it."""

    def __init__(self, weight) -> None:
        self._weight = weight

    def __call__(self, rows, _weight, bias):
        return rows @ self._weight.T


@pytest.mark.parametrize(("hide", "covered"), [(_packed, "packed"), (_Opaque, "probed")])
def test_a_changed_weight_behind_the_layer_is_seen(hide, covered) -> None:
    weight = torch.tensor([[0.5, -1.0, 2.0]])
    model = _Emptied(hide(weight))
    before = state_digest(model)
    assert before["covers"][covered] == 1
    assert state_digest(model) == before
    weight[0, 1] = torch.nextafter(weight[0, 1], torch.tensor(0.0))
    assert state_digest(model)["sha256"] != before["sha256"]


@pytest.mark.parametrize("whole", [True, False])
def test_an_adapters_factors_are_seen(whole) -> None:
    model, factor = torch.nn.Linear(2, 2), torch.zeros(1, 1, 4, 2)
    model.lora_a_stacked = factor if whole else (factor,)
    before = state_digest(model)
    assert before["covers"]["adapters"] == 1
    factor[0, 0, 1, 1] = 1.0
    assert state_digest(model)["sha256"] != before["sha256"]


class _Quantised(torch.nn.Module):
    """A layer that gave its weight up to a kernel, which still answers."""

    def __init__(self, weight) -> None:
        super().__init__()
        self.register_parameter("weight", None)
        self.quant_method = self
        self.input_size_per_partition = 3
        self.params_dtype = torch.float32
        self._hidden = weight

    def apply(self, layer, rows, bias):
        return rows @ self._hidden.T


def test_a_weight_that_a_quantised_layer_gave_up_is_covered_by_its_answer() -> None:
    weight = torch.tensor([[1.0, -2.0, 3.0]])
    before = state_digest(_Quantised(weight))
    assert (before["covers"]["probed"], before["uncovered"]) == (1, [])
    weight[0, 2] = 4.0
    assert state_digest(_Quantised(weight))["sha256"] != before["sha256"]


def test_what_cannot_be_seen_is_named() -> None:
    assert state_digest(torch.nn.Sequential(_Emptied()))["uncovered"] == ["0"]
