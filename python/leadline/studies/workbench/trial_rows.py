"""An experiment as flat rows, one for every trial, for other tools."""

from __future__ import annotations

from typing import Any

from leadline.record.workbench import Experiment, ResponseMs, Sample, Trial


def trial_rows(experiment: Experiment) -> list[dict[str, Any]]:
    """Return one flat dictionary per trial, all with the same keys in the same order.

    Factors have their own names with `factor_` before. Batches are left out: `leadline show --json`
    has them.
    """
    return [
        _row(experiment, own.sample, trial)
        for own in experiment.peaks
        for trial in (*own.trials, *own.lengths)
    ]


def _row(experiment: Experiment, sample: Sample, trial: Trial) -> dict[str, Any]:
    start, request, measured = experiment.start, trial.request, trial.measured
    response = measured.response_ms if measured is not None else None
    return {
        "experiment_id": start.study_id,
        "name": start.system,
        "policy": start.policy,
        **{f"factor_{factor.name}": sample.get(factor.name) for factor in start.factors},
        "order": trial.order,
        "started_at": trial.started_at,
        "worker": trial.worker,
        # As text: other tools read numbers over 2^53 wrongly.
        "seed": str(trial.seed),
        "purpose": request.purpose,
        "rate_per_s": request.rate_per_s,
        "seconds_asked": request.seconds,
        "state": trial.state.value,
        "failure": trial.failure,
        "cost_s": trial.cost_s,
        "seconds": measured and measured.seconds,
        "warm_up_s": measured and measured.warm_up_s,
        "due": measured and measured.due,
        "offered_per_s": measured and measured.offered_per_s,
        "completed_per_s": measured and measured.completed_per_s,
        "unanswered": measured and measured.unanswered,
        "failed": measured and measured.failed,
        "sent_late_ms_p99": measured and measured.sent_late_ms_p99,
        **{
            f"response_ms_{name}": response and getattr(response, name)
            for name in ResponseMs.__struct_fields__
        },
    }
