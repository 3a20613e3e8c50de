"""Scenario generators against values worked out apart from them."""

import numpy as np
import pytest

from xcfg.testing import rounding
from xcfg.testing.scenarios import SCENARIOS, Shape
from xcfg.testing.scenarios.draft import Draft, begin
from xcfg.testing.scenarios.finish import finish
from xcfg.testing.scenarios.layout import Wants, draw_layout
from xcfg.testing.scenarios.magnitude import FLOOR, NATS
from xcfg.testing.scenarios.precision import DTYPES, UNIT, rounded
from xcfg.testing.scenarios.processors import seen_before
from xcfg.testing.scenarios.storage import kept_in
from xcfg.testing.scenarios.supports import min_p, top_k, top_p

pytestmark = pytest.mark.full  # minutes on a busy machine

SMALL = Shape(rows=12, tokens=600, vocabulary=100, dtype="float32")
NAMES = """shift pairing boundary-end boundary-start truncated left-padding packed-positions length stale-tail
stale-weights steps-growth temperature kept-mass processed monotone stale-prefix block constant-offset padded-zero
above-zero duplicated-step scoring-path rank sequences low-precision-storage proportional floor unknown"""
REPORTS = "T1 T2 T3 T5 T6 T7 T8 W1 W2 W3 W4 S1 S2 S3 S4 C1 C2 C3 O1 O2 O3 A1 A2 A3 A4 A5 R1 R2 Q1 Q2 Q3 M1 N1"
"""All but T4, for a retokenised text never becomes a pair, and O4, whose missing expert ids are no logprobs."""
KINDS, VISIBLE = set(NAMES.split()), set(REPORTS.split())
CLEAN = [one.id for one in SCENARIOS.values() if one.kinds == ("floor",)]


def drawn(name, seed=0, shape=SMALL):
    return SCENARIOS[name].drafted(np.random.default_rng(seed), shape)


def exact(logits, token):
    """(N,) log-softmax in float64 with the definition's own sum."""
    logits = np.asarray(logits, np.float64)
    return logits[np.arange(len(token)), token] - np.log(np.exp(logits - 40).sum(axis=1)) - 40


def test_every_kind_has_two_variants_and_every_visible_report_one():
    singles = [one for one in SCENARIOS.values() if len(one.kinds) == 1]
    for kind in KINDS:
        assert sum(one.kind == kind for one in singles) >= 2, kind
    assert {one.kind for one in singles} == KINDS
    assert {cause for one in singles for cause in one.cause} == VISIBLE
    assert all(one.right <= KINDS for one in SCENARIOS.values())
    assert [one.id for one in SCENARIOS.values() if len(one.text.split()) < 7] == []
    assert all(one.kinds[0] != one.kinds[1] for one in SCENARIOS.values() if len(one.kinds) == 2)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_drawn_is_a_recording(name):
    for seed, dtype in enumerate(DTYPES):
        shape = Shape(rows=12, tokens=600, vocabulary=100, dtype=dtype)
        _, observed = drawn(name, seed, shape)
        rows, again = observed.rows, SCENARIOS[name].draw(np.random.default_rng(seed), shape)
        assert rows.length.min() >= 1 and rows.length.sum() == len(observed.d) == 600
        assert np.isfinite(observed.d).all() and np.array_equal(observed.d, again.d)
        assert all((np.diff(observed.position)[np.diff(observed.row) == 0] > 0).tolist())
        assert observed.token.min() >= 0 and observed.token.max() < 100
        assert all(getattr(rows, column) is not None for column in SCENARIOS[name].keep - {"dtype"})
        for side in (observed.rollout, observed.training):
            if side.top is not None:
                found = side.top.token == observed.token[:, None]
                held = found.any(axis=1)
                np.testing.assert_allclose(side.top.logprob[found], side.logprob[held], atol=1e-5)
                assert (np.nan_to_num(np.diff(side.top.logprob, axis=1), nan=-1) <= 0).all()
                assert np.array_equal(np.isnan(side.top.logprob), side.top.token < 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_is_to_nearest_even(dtype):
    values = np.random.default_rng(3).standard_normal(5000).astype(np.float32) * np.float32(17)
    assert np.array_equal(rounded(values, dtype), rounding.rounded(values, dtype))
    assert np.abs(rounded(values, dtype) / values - 1).max() <= UNIT[dtype]
    halfway = np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32)
    assert rounded(halfway, "bfloat16").tolist() == [1.0, 1 + 2**-6]


@pytest.mark.parametrize("dtype", DTYPES)
def test_clean_noise_has_the_stated_quantiles(dtype):
    parts = [drawn("clean", seed, Shape(rows=12, tokens=2000, dtype=dtype)) for seed in range(12)]
    size = np.abs(np.concatenate([observed.d for _, observed in parts]))
    logprob = np.concatenate([observed.rollout.logprob for _, observed in parts])
    doubt = size[(logprob < -0.5) & (logprob > -8)]
    typical, most = {"float32": (1e-6, 3e-5), "float16": (1e-3, 0.05), "bfloat16": (1e-2, 0.4)}[dtype]
    assert typical / 3 < np.median(doubt) < typical * 2
    assert np.quantile(size, 0.99) < 10 * typical and size.max() < most
    assert NATS[dtype] / 2 < size.mean() < NATS[dtype] * 2
    assert 0.45 < (logprob > -0.1).mean() < 0.65 and (logprob < -4).mean() > 0.03
    assert abs(np.concatenate([observed.d for _, observed in parts]).mean()) < NATS[dtype] / 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_floor_is_the_disturbance_that_moves_logprobs_as_noise_does(dtype):
    moved, noise = [], []
    for seed in range(8):
        shape = Shape(rows=12, tokens=2000, dtype=dtype)
        noise.append(np.abs(drawn("clean", seed, shape)[1].d).mean())
        draft = begin(np.random.default_rng(seed), Shape(rows=12, tokens=2000, dtype="float32"), Wants())
        draft.disturb(draft.training, np.ones(len(draft.row)), 1e-3)
        moved.append(np.abs(finish(draft, ()).d).mean() / 1e-3)
    assert 0.5 < FLOOR[dtype] * np.mean(moved) / np.mean(noise) < 2


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_clean_controls_stay_within_the_noise(name, dtype):
    _, observed = drawn(name, 5, Shape(rows=12, tokens=1000, dtype=dtype))
    assert np.abs(observed.d).mean() < 3 * NATS[dtype]


def test_layouts_hold_together():
    for seed in range(30):
        generator = np.random.default_rng(seed)
        layout = draw_layout(generator, Shape(rows=20, tokens=900), Wants(steps=4, ranks=4))
        rows = layout.rows
        assert rows.length.sum() == 900 and len(np.unique(rows.train_rank)) >= 3 and len(np.unique(rows.step)) >= 4
        last = np.cumsum(rows.length) - 1
        assert (rows.response_length > layout.position[last]).all() and (
            layout.position[last + 1 - rows.length] == 0
        ).all()
        for batch in np.unique(rows.batch):
            here = rows.batch == batch
            widths = rows.padding[here] + rows.prompt_length[here]
            assert len(np.unique(widths)) == 1 or (rows.padding == 0).all()


def test_metadata_is_sometimes_whole_sometimes_partial_and_sometimes_gone():
    columns = ("prompt_length", "response_length", "rollout_rank", "train_rank", "padding", "batch", "step")
    missing = [sum(getattr(drawn("clean", seed)[1].rows, name) is None for name in columns) for seed in range(40)]
    assert missing.count(0) >= 10 and missing.count(7) >= 3 and any(0 < count < 7 for count in missing)


@pytest.mark.parametrize("name", ["temperature-rollout", "temperature-training", "temperature-scale"])
def test_a_temperature_divides_the_logits_of_one_side(name):
    draft, observed = drawn(name)
    temperature = draft.facts["temperature"]
    divided = {"temperature-rollout": draft.rollout}.get(name, draft.training)
    other = draft.training if divided is draft.rollout else draft.rollout
    recorded = [observed.rollout, observed.training]
    one, two = recorded if divided is draft.rollout else recorded[::-1]
    np.testing.assert_allclose(one.logprob, exact(divided.raw.astype(float) / temperature, draft.token), atol=2e-5)
    np.testing.assert_allclose(two.logprob, exact(other.raw, draft.token), atol=2e-5)
    assert np.abs(observed.d).mean() > 1e-5


def test_a_temperature_of_some_rows_leaves_the_others():
    draft, observed = drawn("temperature-rows", 1)
    hit = draft.facts["hit"][observed.row]
    assert np.abs(observed.d[hit]).mean() > 30 * np.abs(observed.d[~hit]).mean()


@pytest.mark.parametrize("name", ["kept-mass-top-p", "kept-mass-top-k", "kept-mass-min-p", "kept-mass-training"])
def test_the_ratio_is_the_kept_mass(name):
    draft, observed = drawn(name, 2)
    raw = draft.rollout.raw.astype(np.float64)
    probability = np.exp(raw - raw.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    kept = draft.facts["keep"](draft.rollout.raw)
    mass = (probability * kept).sum(axis=1)
    assert kept[np.arange(len(kept)), observed.token].all()
    sign = 1 if draft.facts["on_rollout"] else -1
    np.testing.assert_allclose(observed.d, sign * np.log(mass), atol=1e-4)
    assert mass.mean() < 0.999


def test_supports_are_those_of_the_definition():
    logits = np.log(np.array([[0.5, 0.25, 0.15, 0.1], [0.97, 0.01, 0.01, 0.01]])).astype(np.float32)
    assert top_p(0.7)(logits).tolist() == [[True, True, False, False], [True, False, False, False]]
    assert top_p(0.8)(logits)[0].tolist() == [True, True, True, False]
    assert top_k(2)(logits)[0].tolist() == [True, True, False, False]
    assert min_p(0.25)(logits).tolist() == [[True, True, True, False], [True, False, False, False]]


@pytest.mark.parametrize("name", ["shift-flat", "shift-rows", "shift-padded"])
def test_a_shift_is_exactly_a_shift(name):
    draft, observed = drawn(name, 3)
    by, side = draft.facts["by"], draft.facts["side"]
    recorded, true = getattr(observed, side).logprob, getattr(draft, side).logprob
    for row in range(SMALL.rows):
        here = np.flatnonzero(observed.row == row)
        for number, place in enumerate(here):
            if 0 <= number + by < len(here):
                assert recorded[place] == true[here[number + by]]


def test_pairing_is_a_permutation_without_fixed_rows():
    draft, observed = drawn("pairing-all", 4)
    source, side = draft.facts["source"], draft.facts["side"]
    assert sorted(source) == list(range(SMALL.rows)) and (source != np.arange(SMALL.rows)).all()
    recorded = getattr(observed, side).logprob.reshape(SMALL.rows, -1)
    assert np.array_equal(recorded, getattr(draft, side).logprob.reshape(SMALL.rows, -1)[source])


def test_swapped_rows_are_swapped_in_pairs():
    draft, _ = drawn("pairing-swapped", 4)
    source = draft.facts["source"]
    assert np.array_equal(source[source], np.arange(SMALL.rows)) and 4 <= (source != np.arange(SMALL.rows)).sum() < 12


@pytest.mark.parametrize("name", ["boundary-end-roll", "boundary-end-stop"])
def test_only_last_tokens_differ(name):
    _, observed = drawn(name, 5)
    last = np.diff(observed.row, append=-1) != 0
    assert np.abs(observed.d[~last]).max() < 1e-4 and np.median(np.abs(observed.d[last])) > 1


def test_the_rolled_label_is_the_next_rows_first_token():
    draft, observed = drawn("boundary-end-roll", 6)
    last = np.flatnonzero(np.diff(observed.row, append=-1) != 0)
    label = np.roll(observed.token, -1)[last]
    np.testing.assert_allclose(observed.training.logprob[last], exact(draft.training.raw[last], label), atol=2e-5)


def test_only_first_tokens_differ():
    _, observed = drawn("boundary-start-leak", 5)
    first = np.diff(observed.row, prepend=-1) != 0
    assert np.abs(observed.d[~first]).max() < 1e-4 and np.median(np.abs(observed.d[first])) > 1


def test_a_cap_pads_everything_beyond_it():
    draft, observed = drawn("truncated-zero", 7)
    beyond = observed.position >= draft.facts["cap"]
    side = getattr(observed, draft.facts["side"]).logprob
    assert (side[beyond] == 0).all() and 0.05 < beyond.mean() < 0.6 and np.abs(observed.d[~beyond]).max() < 1e-4
    draft, observed = drawn("truncated-held", 7)
    side = getattr(observed, draft.facts["side"]).logprob
    for row in range(SMALL.rows):
        assert len(set(side[(observed.row == row) & (observed.position >= draft.facts["cap"] - 1)])) <= 1


REGIONS = {
    "left-padding-mask": lambda d, o: d.rows.padding[o.row] > 0,
    "packed-all": lambda d, o: np.isin(o.row, np.flatnonzero(np.diff(d.rows.batch, prepend=-1) == 0)),
    "length-response": lambda d, o: o.position >= d.facts["edge"],
    "length-context": lambda d, o: o.position + d.rows.prompt_length[o.row] >= d.facts["edge"],
    "rank-training": lambda d, o: np.isin(d.rows.train_rank[o.row], np.unique(d.rows.train_rank[d.facts["hit"]])),
    "rank-adapter": lambda d, o: np.isin(o.row, np.unique(o.row[d.facts["where"]])),
    "sequences-some": lambda d, o: np.isin(o.row, d.facts["hit"]),
    "sequences-last": lambda d, o: np.isin(o.row, np.flatnonzero(np.diff(d.rows.batch, append=-1))),
    "block-draft": lambda d, o: o.position % d.facts["every"] == 0,
    "block-chunk": lambda d, o: o.position + d.rows.prompt_length[o.row] >= d.facts["edge"],
    "stale-prefix-common": lambda d, o: o.position < d.facts["edge"],
}


@pytest.mark.parametrize("name", REGIONS)
def test_the_drift_is_where_the_docstring_says(name):
    for seed in range(6):
        draft, observed = drawn(name, seed)
        where = REGIONS[name](draft, observed)
        assert 0 < where.sum() < len(where)
        inside, outside = np.abs(observed.d[where]).mean(), np.abs(observed.d[~where]).mean()
        assert inside > 2 * outside and outside < 3 * NATS["float32"]


def test_stale_blocks_end_at_a_multiple_of_the_block():
    for seed in range(5):
        draft, observed = drawn("stale-prefix-edge", seed)
        hit = draft.facts["where"].astype(bool)
        absolute = observed.position + draft.rows.prompt_length[observed.row]
        for row in np.unique(observed.row[hit]):
            mine = observed.row == row
            end = absolute[mine & hit].max() + 1
            assert end % draft.facts["block"] == 0 or end == absolute[mine].max() + 1
            assert hit[mine].argmin() == hit[mine].sum() or hit[mine].all()


def test_a_straddled_row_drifts_to_its_end_and_from_a_place_of_its_own():
    draft, observed = drawn("stale-tail-straddle", 2)
    hit = draft.facts["where"].astype(bool)
    starts = []
    for row in np.unique(observed.row[hit]):
        mine = hit[observed.row == row]
        assert mine[-1] and not mine[0] and (np.diff(mine.astype(int)) >= 0).all()
        starts.append(int(mine.argmax()))
    assert len(set(starts)) > 1


def test_growth_follows_the_steps_and_a_restart_resets_it():
    draft, observed = drawn("steps-growth-restart", 1, Shape(rows=48, tokens=4000, dtype="float32"))
    step = draft.rows.step[observed.row]
    size = np.array([np.abs(observed.d[step == number]).mean() for number in np.unique(step)])
    falls = np.flatnonzero(np.diff(size) < 0)
    assert len(falls) >= 1 and size[falls + 1].min() < 0.3 * size.max()


@pytest.mark.parametrize("name", ["constant-offset-summed", "above-zero-offset"])
def test_an_offset_is_the_same_everywhere(name):
    draft, observed = drawn(name, 3)
    sign = 1 if draft.facts["side"] == "training" else -1
    np.testing.assert_allclose(observed.d, sign * draft.facts["amount"], atol=2e-5)


def test_a_padded_vocabulary_adds_its_zero_logits_to_the_normaliser():
    draft, observed = drawn("constant-offset-padding", 3)
    logits = draft.training.logits
    assert logits.shape[1] % 64 == 0 and (logits[:, 100:] == 0).all()
    np.testing.assert_allclose(observed.d, draft.facts["amount"], atol=1e-4)


def test_a_bias_moves_its_ids_and_the_normaliser():
    draft, observed = drawn("processed-bias", 3)
    raw = draft.rollout.raw.astype(np.float64)
    raw[:, draft.facts["ids"]] += float(draft.facts["amount"])
    np.testing.assert_allclose(observed.rollout.logprob, exact(raw, observed.token), atol=2e-5)
    inside = np.isin(observed.token, draft.facts["ids"])
    assert 0.02 < inside.mean() < 0.98


def test_seen_tokens_are_those_earlier_in_the_row():
    seen = seen_before(np.array([0, 0, 0, 1, 1, 2]), np.array([2, 1, 2, 0, 0, 1]), 3)
    assert [set(np.flatnonzero(place)) for place in seen] == [set(), {2}, {1, 2}, set(), {0}, set()]


def test_a_softcap_keeps_the_order():
    draft, observed = drawn("monotone-softcap", 4)
    half, cap = getattr(draft, draft.facts["side"]), draft.facts["cap"]
    logits = cap * np.tanh(half.raw.astype(np.float64) / cap)
    side = getattr(observed, draft.facts["side"])
    np.testing.assert_allclose(side.logprob, exact(logits, observed.token), atol=2e-5)
    assert np.abs(half.logits).max() <= cap


def test_missing_values_are_exactly_zero_and_the_rest_is_clean():
    for name in ("padded-zero-scattered", "padded-zero-runs", "padded-zero-first"):
        draft, observed = drawn(name, 2)
        gone = draft.facts["gone"]
        side = getattr(observed, draft.facts["side"]).logprob
        assert gone.any() and (side[gone] == 0).all() and np.abs(observed.d[~gone]).max() < 1e-4


@pytest.mark.parametrize("name", ["duplicated-step-last", "duplicated-step-rows"])
def test_copied_rows_repeat_an_earlier_row(name):
    draft, observed = drawn(name, 2)
    side, source = getattr(observed, draft.facts["side"]).logprob, draft.facts["source"]
    rows = [side[observed.row == row] for row in range(SMALL.rows)]
    copies = np.flatnonzero(source != np.arange(SMALL.rows))
    assert len(copies) and (source[copies] < copies).all()
    for row in copies:
        assert np.array_equal(rows[row], rows[source[row]][: len(rows[row])])


@pytest.mark.parametrize("name", ["scoring-path-head", "scoring-path-ids", "scoring-path-self"])
def test_a_wrong_path_is_off_by_nats_and_knows_nothing_of_the_other(name):
    _, observed = drawn(name, 2)
    assert np.abs(observed.d).mean() > 1
    assert abs(np.corrcoef(observed.rollout.logprob, observed.training.logprob)[0, 1]) < 0.5


def test_stored_values_are_on_the_grid_of_their_dtype():
    draft, observed = drawn("storage-bfloat16", 2)
    side = getattr(observed, draft.facts["side"]).logprob
    assert (side.astype(np.float32).view(np.uint32) & 0xFFFF == 0).all() and np.abs(observed.d).max() > 1e-3
    values = [-0.1171875, -1.0625, -1.1875, -3.2, -0.001]
    assert kept_in(np.array(values), "float8_e4m3fn").tolist() == [-0.1171875, -1.0, -1.25, -3.25, -(2**-9)]


def test_logarithms_of_another_base():
    draft, observed = drawn("proportional-base", 2)
    sides = getattr(observed, draft.facts["side"]), getattr(draft, draft.facts["side"])
    np.testing.assert_allclose(sides[0].logprob, draft.facts["factor"] * sides[1].logprob)


def test_logprobs_above_zero():
    for name in ("above-zero-shard", "above-zero-logits", "above-zero-offset", "above-zero-normaliser"):
        _, observed = drawn(name, 2)
        assert max((side.logprob > 1e-3).mean() for side in (observed.rollout, observed.training)) > 0.05, name


def test_disturbed_states_leave_the_others_alone():
    draft = begin(np.random.default_rng(0), SMALL, Wants())
    before, where = draft.training.states, np.arange(600) % 3 == 0
    draft.disturb(draft.training, where, 0.01)
    moved = np.linalg.norm(draft.training.states - before, axis=1) / np.linalg.norm(before, axis=1)
    np.testing.assert_allclose(moved[where], 0.01, rtol=1e-3)
    assert (moved[~where] == 0).all() and draft.rollout.states is before


LOCAL = """left-padding-mask left-padding-growing packed-all packed-growing length-context length-response rank-training
rank-adapter sequences-some sequences-last stale-tail-straddle stale-tail-template stale-prefix-edge block-pages
block-draft block-restart boundary-end-few boundary-start-few"""


@pytest.mark.parametrize("name", LOCAL.split())
def test_the_smallest_fault_still_stands_out_of_the_noise(name, monkeypatch):
    monkeypatch.setattr(Draft, "between", lambda self, low, high: float(low))
    for seed, dtype in enumerate(DTYPES):
        draft, observed = drawn(name, seed, Shape(rows=24, tokens=1500, dtype=dtype))
        where, size = np.asarray(draft.facts["where"]).astype(bool), np.abs(observed.d)
        noise = size[~where]
        assert (size[where].mean() - noise.mean()) / (noise.std() / np.sqrt(where.sum())) > 10
        assert size[where].mean() > 2 * noise.mean()
