"""``xcfg run --limit``: a smoke test that is never taken for the whole run."""

import json

RECORDED = {"axes": {}, "cases": [], "slices": {}, "tokens": {"recorded": "tokens.jsonl"}}


def run(xcfg, experiment, out, *extra):
    return xcfg("-q", "run", experiment, "--allow-fake", "--out", experiment.parent / out, "--json", *extra)


def write_tokens(folder, masks):
    rows = [
        {"id": f"s{row}", "prompt_ids": [1, 2], "response_ids": [3] * len(mask), "mask": mask}
        for row, mask in enumerate(masks)
    ]
    (folder / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_limited_run_is_another_identity_and_says_so(xcfg, write):
    experiment = write(**RECORDED)
    write_tokens(experiment.parent, [[True] * 3, [True, False, True], [True] * 4])
    limited = run(xcfg, experiment, "small", "--limit", 5).document
    assert limited["limited"] == 5
    assert [case["active_tokens"] for case in limited["cases"]] == [3 + 2]
    whole = run(xcfg, experiment, "whole").document
    assert whole["limited"] is None and [case["active_tokens"] for case in whole["cases"]] == [9]
    assert whole["cases"][0]["id"] != limited["cases"][0]["id"]

    small = experiment.parent / "small"
    mixed = run(xcfg, experiment, "small")
    assert mixed.code == 2 and "tokens.limit is 5, not nothing" in mixed.out
    assert run(xcfg, experiment, "whole", "--limit", 5).code == 2
    note = "limited to 5 active tokens"
    assert note in xcfg("report", small).out and note in xcfg("show", small, "baseline").out
    assert note in xcfg("explain", small).out
    assert xcfg("report", small, "--json").document["limited"] == 5
    dry = ("run", experiment, "--allow-fake", "--out", small, "--dry-run")
    assert note in xcfg(*dry, "--limit", 5).out and xcfg(*dry, "--limit", 6).code == 2
    attributes = json.loads((small / "cube.zarr/zarr.json").read_text())["attributes"]
    assert attributes["identity"]["tokens"]["limit"] == 5


def test_sampling_starts_from_as_many_prompts_as_fit(xcfg, write):
    # four prompts, six new tokens each
    experiment = write(axes={}, cases=[], slices={})
    two = run(xcfg, experiment, "two", "--limit", 17).document
    assert [case["active_tokens"] for case in two["cases"]] == [2 * 6]
    # fewer than one response: that response is cut by the sampler itself
    short = run(xcfg, experiment, "short", "--limit", 4).document
    assert [case["active_tokens"] for case in short["cases"]] == [4]
    again = run(xcfg, experiment, "short", "--limit", 4).document
    assert again["engines"]["constructed"] == 0
