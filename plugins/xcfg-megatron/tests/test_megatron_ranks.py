"""Ranks under torch's elastic launcher over gloo: tensor, pipeline and data parallel, against a float64 oracle."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg_megatron.testing.cases import TRAINING, megatron_play
from xcfg_megatron.testing.models import make_tiny
from xcfg_torch.testing.oracle import oracle_logprobs
from xcfg_torch.testing.play import play
from xcfg_torch.testing.ranks import joined, play_ranks

TP, PP, RANKS = "training.tensor_parallel_size", "megatron.pipeline_parallel_size", "training.world_size"
LAYOUT, PADDING = "logp.tp_layout", "layout.vocab_padding"
IN_NORMALISER, DTYPE = "megatron.padded_vocab_in_normaliser", "training.compute_dtype"
CHOSEN = {
    "training.output_dtype": "float32",
    "batch.micro_size": 3,
    "execution.collective": "gloo",
    "megatron.layer_spec": "local",
}
FULL, PARALLEL = "full-vocabulary", "vocab-parallel"
QUICK = {
    "tp2, parts, padding out": ({TP: 2, RANKS: 2, LAYOUT: PARALLEL, PADDING: 96}, "deterministic", {"block": 24}),
}
WHOLE = {
    "tp2, whole rows": ({TP: 2, RANKS: 2, LAYOUT: FULL}, "production", {}),
    "tp2, parts, Megatron's kernel": ({TP: 2, RANKS: 2, LAYOUT: PARALLEL}, "megatron", {}),
    "tp2, whole rows, Megatron's kernel": ({TP: 2, RANKS: 2, LAYOUT: FULL, PADDING: 96}, "megatron", {}),
    "tp2, left": ({TP: 2, RANKS: 2, "layout.padding_side": "left"}, "production", {}),
    "tp4": ({TP: 4, RANKS: 4, LAYOUT: PARALLEL}, "deterministic", {"block": 64}),
    "pp2": ({PP: 2, RANKS: 2}, "production", {}),
    "pp2, left": ({PP: 2, RANKS: 2, "layout.padding_side": "left", "layout.position_ids": "padded"}, "production", {}),
    "pp4": ({PP: 4, RANKS: 4}, "production", {}),
    "tp2 pp2": ({TP: 2, PP: 2, RANKS: 4, LAYOUT: PARALLEL}, "megatron", {}),
    "dp2": ({RANKS: 2}, "production", {}),
    "tp2 dp2": ({TP: 2, RANKS: 4}, "production", {}),
    "pp2 dp2": ({PP: 2, RANKS: 4}, "production", {}),
}
CASES = [*QUICK.items(), *(pytest.param(*case, marks=pytest.mark.full) for case in WHOLE.items())]


def _launched(checkpoint, batch, folder, knobs, backend="production", options=None):
    what = megatron_play(checkpoint, knobs, backend=backend, options=options or {}, times=2)
    return play_ranks(what, batch, folder / "launch", ranks=knobs[RANKS])


def _against(documents, expected) -> float:
    return float(np.abs(joined(documents).logprobs - expected).max())


@pytest.mark.parametrize(("name", "case"), CASES)
def test_ranks_agree_with_float64(name, case, checkpoint, batch, tmp_path) -> None:
    knobs, backend, options = case
    documents = _launched(checkpoint, batch, tmp_path, knobs, backend, options)
    for time in range(2):
        samples = joined(documents, time)
        assert samples.sequence.tolist() == list(range(len(batch.ids)))
        assert samples.input_ids.tolist() == [token for row in _rows(batch) for token in row]
        assert samples.logprobs.tobytes() == joined(documents).logprobs.tobytes()
    assert _against(documents, np.concatenate(oracle_logprobs(checkpoint, batch))) < 2e-5
    _check_documents(documents, knobs, backend)
    whole = dict(play(megatron_play(checkpoint), batch).identity.recorded["sections"])
    assert all(document["rank"]["facts"]["sections"] == whole for document in documents)


def _rows(batch):
    return [[*prompt, *response] for prompt, response in zip(batch.prompts, batch.responses, strict=True)]


def _check_documents(documents, knobs, backend) -> None:
    tensor, stages, ranks = knobs.get(TP, 1), knobs.get(PP, 1), knobs[RANKS]
    peers = tensor * stages
    summed = "float32" if tensor > 1 else None
    for rank, document in enumerate(documents):
        asked = {**TRAINING, **CHOSEN, **knobs, "training.reduce_dtype": summed}
        observed = {name: value for name, value in document["observed"].items() if name != "logp.backend"}
        assert observed == {name: value for name, value in asked.items() if name != "logp.backend"}
        assert document["bound"]["backend"] == backend
        assert document["states"][0] == document["states"][1]
        assert document["rank"]["parallel"] == {"tp": tensor, "pp": stages, "dp": ranks // peers}
        facts = document["rank"]["facts"]
        stage = rank % peers // tensor
        assert facts["layers"] == list(range(4 // stages * stage, 4 // stages * (stage + 1)))
        assert facts["ranks"]["tp"] == list(range(rank - rank % tensor, rank - rank % tensor + tensor))
        assert facts["collective_backend"] == "gloo"
        assert bool(document["samples"][0].rows) == (rank % peers == 0)
    states = {document["states"][0] for document in documents}
    assert len(states) == peers  # data-parallel copies are equal, every other rank holds a part of its own


@pytest.mark.full
@pytest.mark.parametrize("layout", [FULL, PARALLEL])
def test_padding_is_in_the_normaliser_of_all_ranks(layout, checkpoint, batch, tmp_path) -> None:
    """By hand: 32 rows of zeros add 32 to the sum of exponentials; Megatron's kernel knows no other way."""
    knobs = {TP: 2, RANKS: 2, PADDING: 96, IN_NORMALISER: True, LAYOUT: layout}
    documents = _launched(checkpoint, batch, tmp_path, knobs, "megatron")
    one = play(megatron_play(checkpoint, {PADDING: 96, IN_NORMALISER: True}), batch)
    plain = np.concatenate(oracle_logprobs(checkpoint, batch))
    assert _against(documents, one.scored[0].samples.logprobs) < 2e-5
    assert _against(documents, plain) > 1e-3
    assert {document["observed"][IN_NORMALISER] for document in documents} == {True}
    assert {document["semantics"]["vocab_size"] for document in documents} == {288}


@pytest.mark.full
@pytest.mark.parametrize("knobs", [{PP: 2, RANKS: 2}, {TP: 2, PP: 2, RANKS: 4}])
def test_a_tied_head_of_another_stage(knobs, batch, tmp_path) -> None:
    folder = make_tiny(tmp_path / "model", tie_word_embeddings=True)
    documents = _launched(folder, batch, tmp_path, knobs)
    assert _against(documents, np.concatenate(oracle_logprobs(folder, batch))) < 2e-5


@pytest.mark.full
@pytest.mark.parametrize("knobs", [{TP: 2, RANKS: 2}, {TP: 4, RANKS: 4}, {PP: 2, RANKS: 2}])
def test_bfloat16(knobs, checkpoint, batch, tmp_path) -> None:
    documents = _launched(checkpoint, batch, tmp_path, {**knobs, DTYPE: "bfloat16"})
    assert 1e-4 < _against(documents, np.concatenate(oracle_logprobs(checkpoint, batch))) < 0.2
    assert {document["rank"]["compute_dtype"] for document in documents} == {"bfloat16"}
    summed = "bfloat16" if TP in knobs else None
    assert {document["observed"]["training.reduce_dtype"] for document in documents} == {summed}
    one = play(megatron_play(checkpoint, {DTYPE: "bfloat16"}), batch).scored[0].samples.logprobs
    if knobs.get(PP) == 2:  # stages hand on the very tensor: the sums are those of one rank
        assert joined(documents).logprobs.tobytes() == one.tobytes()


@pytest.mark.full
def test_a_missing_interleave_is_caught_on_several_ranks(checkpoint, batch, tmp_path, monkeypatch) -> None:
    """The proof must fail on ranks too: a sitecustomize breaks the layout in every process."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import xcfg_megatron.layouts as it\n"
        "def local(self, sources, rank, ranks):\n"
        "    import torch\n"
        "    return torch.cat(list(sources)).chunk(ranks)[rank]\n"
        "it.QueryKeyValue.local = local\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    with pytest.raises(AssertionError, match="is not the checkpoint's"):
        _launched(checkpoint, batch, tmp_path, {TP: 2, RANKS: 2})
