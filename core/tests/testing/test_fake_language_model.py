from __future__ import annotations

import numpy as np
import pytest

from xcfg.testing.language import LanguageModel, Precision, Weights, selected_logprob
from xcfg.testing.rounding import rounded

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]


def exact_logits(weights, tokens):
    """The definition in float64, with numpy's own matrix product."""
    arrays = {name: array.astype(np.float64) for name, array in weights.arrays.items()}
    state = np.zeros(arrays["mixer"].shape[0])
    rows = []
    for position, token in enumerate(tokens):
        state = 0.75 * state + arrays["embedding"][token]
        hidden = np.tanh(state @ arrays["mixer"] + arrays["position"][position % len(arrays["position"])])
        rows.append(hidden @ arrays["head"])
    return np.array(rows)


def test_float32_agrees_with_float64():
    weights = Weights(1, 20)
    logits = LanguageModel(weights, Precision()).logits(TOKENS)
    np.testing.assert_allclose(logits, exact_logits(weights, TOKENS), rtol=0, atol=2e-5)


def test_logits_do_not_depend_on_what_follows():
    model = LanguageModel(Weights(1, 20), Precision(compute="bfloat16", cache="bfloat16", output="bfloat16"))
    assert np.array_equal(model.logits(TOKENS)[:3], model.logits([*TOKENS[:3], 7, 7, 7])[:3])


@pytest.mark.parametrize(
    "precision",
    [
        Precision(compute="bfloat16"),
        Precision(compute="float16"),
        Precision(cache="float8_e4m3fn"),
        Precision(output="bfloat16"),
        Precision(shards=2),
    ],
    ids=str,
)
def test_every_setting_changes_the_logits_a_little(precision):
    weights = Weights(1, 200)
    logits = LanguageModel(weights, precision).logits(TOKENS)
    assert not np.array_equal(logits, LanguageModel(weights, Precision()).logits(TOKENS))
    assert np.abs(logits - exact_logits(weights, TOKENS)).max() < 2


def test_eager_attention_rounds_the_decayed_state():
    weights = Weights(1, 200)
    lazy, eager = (
        LanguageModel(weights, Precision(compute="bfloat16", eager=eager)).logits(TOKENS) for eager in (False, True)
    )
    assert np.array_equal(lazy[0], eager[0])
    assert not np.array_equal(lazy[2], eager[2])


def test_rounding_by_hand():
    # bfloat16 has 8 significant bits, float8_e4m3fn 4, float8_e5m2 3; ties go to the even neighbour.
    values = np.array([1 + 2**-7, 1 + 2**-8, 1 + 3 * 2**-8, -300.5, 0.0], dtype=np.float32)
    assert rounded(values, "bfloat16").tolist() == [1 + 2**-7, 1.0, 1 + 2**-6, -300.0, 0.0]
    assert rounded(np.array([17.0, 19.0, 1.1], dtype=np.float32), "float8_e4m3fn").tolist() == [16.0, 20.0, 1.125]
    assert rounded(np.array([5.0, 4.5, 1.3], dtype=np.float32), "float8_e5m2").tolist() == [5.0, 4.0, 1.25]


def test_float16_rounding_agrees_with_numpy():
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    assert np.array_equal(rounded(values, "float16"), values.astype(np.float16).astype(np.float32))


def test_selected_logprob_by_hand():
    logits = np.log(np.array([[1, 2, 1], [1, 1, 6]], dtype=np.float32))
    np.testing.assert_allclose(selected_logprob(logits, np.array([1, 0])), np.log([0.5, 0.125]), rtol=1e-6)
    assert selected_logprob(logits[:0], np.array([], dtype=np.int64)).shape == (0,)
