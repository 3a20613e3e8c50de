"""Fields that people look for in an experiment and that belong elsewhere, refused by name with the reason."""

from __future__ import annotations

from attrs import evolve

from xcfg.planner.problem import Problem

_OPTIONS = {
    "timeout": "--timeout",
    "resume": "--resume/--no-resume",
    "no_resume": "--resume/--no-resume",
    "jobs": "--jobs",
    "workers": "--jobs",
    "start_timeout": "--start-timeout",
    "stop_timeout": "--stop-timeout",
    "interpreter": "--rollout-python or --training-python",
    "python": "--rollout-python or --training-python",
    "rollout_python": "--rollout-python",
    "training_python": "--training-python",
    "executor": "--executor",
    "executor_option": "--executor-option",
    "executor_options": "--executor-option",
    "retry": "--retry",
    "retries": "--retry",
    "allow_fake": "--allow-fake",
    "out": "--out",
    "out_dir": "--out",
    "output": "--out",
    "repeat": "--repeat",
    "repeats": "--repeat",
    "only": "--only",
    "limit": "--limit",
    "share": "--no-share",
    "no_share": "--no-share",
    "json_lines": "--json-lines",
    "fail_fast": "--fail-fast",
    "strict": "--strict",
    "dry_run": "--dry-run",
    "filter": "--filter",
    "filters": "--filter",
    "max_cases": "--max-cases",
    "slice": "--slice",
    "profile": "--profile",
}

_LIMITS = {
    "threshold",
    "thresholds",
    "tolerance",
    "tolerances",
    "limits",
    "atol",
    "rtol",
    "max_abs_dlogp",
    "mean_abs_dlogp",
    "p95_abs_dlogp",
    "p99_abs_dlogp",
    "approx_kl0",
    "clipfrac0",
}

CONTRACT_REASON = "limits belong to the tolerance contract, an experiment never sets its own"
CONTRACT_HINT = "cite another contract by id or path under `contract`"


def explained(problem: Problem) -> Problem:
    """The same problem with the reason, where it is an unknown name that we refuse on purpose."""
    name = str(problem.path[-1]) if problem.path and problem.at_key else ""
    plain = name.lower().replace("-", "_")
    if plain in _LIMITS:
        return evolve(problem, message=f"{name!r} is refused: {CONTRACT_REASON}", hint=CONTRACT_HINT)
    if plain in _OPTIONS:
        message = f"{name!r} is an option of `xcfg run`, not part of an experiment"
        return evolve(problem, message=message, hint=f"give {_OPTIONS[plain]} on the command line")
    return problem
