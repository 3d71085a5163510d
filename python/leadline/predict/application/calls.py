"""Syncs and metadata calls as terms of their own, where a survey knows anything of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from leadline.predict.application.levels import Kind, Levels
from leadline.record import Access, Interval
from leadline.record.application import SYNC_CALLS, PhaseFound
from leadline.record.application.prediction import Term
from leadline.stats import student_t


def sync_term(phases: Sequence[PhaseFound], levels: Levels, access: Access) -> Term:
    """Return the syncs' time, from a survey whose writes waited for the device.

    A survey whose issuers sync after every N writes says what N writes and a sync take; a read of
    the same bytes that is found in the file cache takes what the copying does. The difference is
    what a sync of as many dirty bytes adds.
    """
    calls = sum(phase.syncs for phase in phases)
    traced = [phase.sync_s for phase in phases if phase.syncs]
    traced_s = None if None in traced else sum(each or 0.0 for each in traced)
    if not access.waits:
        said = "the survey's writes did not wait for the device"
        return Term(
            name="syncs",
            calls=calls,
            seconds=None,
            traced_s=traced_s,
            because=f"{said}; survey with --sync fsync",
        )
    seconds, ln_sd = _sync_seconds([phase for phase in phases if phase.syncs], levels, access)
    half = student_t(levels.predictor.model.df) * ln_sd
    known = Interval(
        seconds, seconds * math.exp(-half), seconds * math.exp(half), levels.predictor.model.n
    )
    return Term(name="syncs", calls=calls, seconds=known, traced_s=traced_s)


def _sync_seconds(
    phases: Sequence[PhaseFound], levels: Levels, access: Access
) -> tuple[float, float]:
    """Seconds of all syncs and the standard deviation of their logarithm."""
    each = access.fsync_each or 1
    asked = [
        Kind(max(512.0, (phase.dirty_at_sync_bytes or 0.0) / each), write, _seq_frac(phase), 1.0)
        for phase in phases
        for write in (True, False)
    ]
    costs = levels.costs(asked) if asked else []
    seconds = sd = 0.0
    for phase, write, read in zip(phases, costs[::2], costs[1::2], strict=True):
        nothing = np.zeros(len(levels.borders))
        (written, written_sd), (copied, copied_sd) = write.at(nothing), read.at(nothing)
        seconds += phase.syncs * each * max(0.0, written - copied)
        sd += phase.syncs * each * math.hypot(written_sd, copied_sd)
    return seconds, sd / seconds if seconds > 0 else 0.0


def _seq_frac(phase: PhaseFound) -> float:
    """Of the writes."""
    writes = [(s.weight * (1 - s.read_frac), s.seq_frac) for s in phase.streams]
    total = sum(weight for weight, _ in writes)
    return sum(weight * seq for weight, seq in writes) / total if total > 0 else 0.0


def metadata_term(phases: Sequence[PhaseFound]) -> Term:
    """Return the other calls, of which no survey knows anything."""
    calls = sum(
        each.calls for phase in phases for each in phase.calls if each.name not in SYNC_CALLS
    )
    traced = [phase.metadata_s for phase in phases]
    return Term(
        name="metadata",
        calls=calls,
        seconds=None,
        traced_s=None if None in traced else sum(each or 0.0 for each in traced),
        because="no survey makes such calls",
    )
