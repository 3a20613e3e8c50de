"""A scorer that is not deterministic is a finding of its case, whatever the verdict."""

from attrs import evolve

from xcfg.cli.judge import judge
from xcfg.runner.artifacts import load_run


def test_noise_between_repeats_is_a_finding_of_the_case(world, registry):
    plan = world.plan((world.side("rollout", "Jitter"), world.side("training")))
    contract = registry().contract(plan.experiment.contract)
    report = world.run(plan, repeat=3)
    for run in (report, load_run(world.out, plan)):
        (outcome,) = judge(evolve(plan), run, contract)
        (finding,) = [item for item in outcome.comparison.findings if item.rule == "repeat"]
        assert (finding.source_class, finding.subclass) == ("execution", "run-to-run")
        # scored three times: -1, -1 - 2**-10, -1 - 2**-9 nats
        assert finding.evidence == {"side": "rollout", "scored": 3, "max_abs_difference": 2.0**-9}
