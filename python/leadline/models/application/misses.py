"""Syncs and metadata calls as terms of their own, where a survey knows anything of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from leadline.models.application.levels import Levels, RequestKind
from leadline.models.model import Floats
from leadline.record import Access, Interval
from leadline.record.application import SYNC_CALLS, PhaseFound, Reuse, Stream
from leadline.record.application.prediction import Term
from leadline.stats import student_t

CallTimes = Mapping[str, Interval]
"""By name, in us."""


def around(value: float, half: float, n: int) -> Interval:
    """Return an interval of this half width in logarithms."""
    return Interval(value, value * math.exp(-half), value * math.exp(half), n)


def sync_term(phases: Sequence[PhaseFound], levels: Levels, access: Access) -> Term:
    """Return the syncs' time, from a survey whose writes waited for the device.

    A survey whose workers sync after every N writes says what N writes and a sync take; a read of
    the same bytes that is found in the page cache takes what the copying does. The difference is
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
    known = around(seconds, half, levels.predictor.model.n)
    return Term(name="syncs", calls=calls, seconds=known, traced_s=traced_s)


def _sync_seconds(
    phases: Sequence[PhaseFound], levels: Levels, access: Access
) -> tuple[float, float]:
    """Seconds of all syncs and the standard deviation of their logarithm."""
    each = access.fsync_each or 1
    asked = [
        RequestKind(
            max(512.0, (phase.dirty_at_sync_bytes or 0.0) / each), write, _seq_frac(phase), 1.0
        )
        for phase in phases
        for write in (True, False)
    ]
    costs = levels.costs(asked) if asked else []
    seconds = sd = 0.0
    for phase, write, read in zip(phases, costs[::2], costs[1::2], strict=True):
        nothing = np.zeros(len(levels.boundaries))
        (written, written_sd), (copied, copied_sd) = write.at(nothing), read.at(nothing)
        seconds += phase.syncs * each * max(0.0, written - copied)
        sd += phase.syncs * each * math.hypot(written_sd, copied_sd)
    return seconds, sd / seconds if seconds > 0 else 0.0


def _seq_frac(phase: PhaseFound) -> float:
    """Of the writes."""
    writes = [(s.weight * (1 - s.read_frac), s.seq_frac) for s in phase.streams]
    total = sum(weight for weight, _ in writes)
    return sum(weight * seq for weight, seq in writes) / total if total > 0 else 0.0


LIKE = {
    "open": ("open", "create"),
    "access": ("stat",),
    "readlink": ("stat",),
    "chown": ("chmod",),
    "utime": ("chmod",),
    "rename": ("unlink",),
    "link": ("create",),
    "symlink": ("create",),
}
"""Calls that a survey times for others; a trace does not say which opening made a file."""
CALLS_LN_SD = 0.3
"""Of what two systems' calls take, in which state each file system ever is."""
CALLS_UNKNOWN_MAX = 0.05
"""Of their time where traced, in calls that no survey times."""


def metadata_term(
    phases: Sequence[PhaseFound], here: CallTimes, there: CallTimes | None, df: float
) -> Term:
    """Return the other calls: each as much slower as a survey's are than where it was traced.

    What a call takes by itself says little: to make a file takes ext4 30 times as long where many
    were removed in the last minutes, and the program's own are large or small. So what they took
    in the trace is scaled, and only that.

    Args:
        phases: of the application.
        here: what calls take where it is predicted.
        there: what they take where it was traced; None where that is not known.
        df: of the intervals.

    """
    each = [call for phase in phases for call in phase.calls if call.name not in SYNC_CALLS]
    traced = [phase.metadata_s for phase in phases]
    traced_s = None if None in traced else sum(part or 0.0 for part in traced)
    term = Term(
        name="metadata", calls=sum(call.calls for call in each), seconds=None, traced_s=traced_s
    )
    if not there or not traced_s:
        said = "what they take depends on the files: give --traced-on, a survey of where it ran"
        return msgspec.structs.replace(term, because=said)
    found = [(call.seconds, _ratio(call.name, here, there)) for call in each]
    known_s = sum(took_s for took_s, ratio in found if ratio)
    if known_s < (1 - CALLS_UNKNOWN_MAX) * traced_s:
        return msgspec.structs.replace(term, because="one of the surveys times no such calls")
    seconds = sum(took_s * ratio[0] for took_s, ratio in found if ratio) * traced_s / known_s
    sd = sum(took_s * ratio[1] for took_s, ratio in found if ratio) / known_s
    half = student_t(df) * math.hypot(sd, CALLS_LN_SD)
    n = min(us.n for us in here.values())
    return msgspec.structs.replace(term, seconds=around(seconds, half, n))


def _ratio(name: str, here: CallTimes, there: CallTimes) -> tuple[float, float] | None:
    """How many times as long a call takes, and the standard deviation of its logarithm."""
    logs, sds = list[float](), list[float]()
    for like in LIKE.get(name, (name,)):
        if like not in here or like not in there:
            return None
        ends = (here[like], there[like])
        logs.append(math.log(ends[0].value / ends[1].value))
        sds.append(math.hypot(*(math.log((i.high or i.value) / i.value) / 2 for i in ends)))
    apart = (max(logs) - min(logs)) / 2
    return math.exp(sum(logs) / len(logs)), math.hypot(max(sds), apart)


# What each stream of an application misses in a cache that all of them share.
#
# The whole application's miss ratio is known (`Reuse`), of reads and of writes, and what its
# streams are made of. Which stream misses how much of that follows from the time T for which a page
# stays: a cache of c pages holds c = integral of S(t) from 0 to T (Hu and others, "Fast Miss Ratio
# Curve Modeling", ATC 2016), where S(t) is the share of references whose page is not used again
# within t. A uniform stream then misses exp(-T / its time between uses), a loop all or nothing. As
# streams are a description and the miss ratio was counted, all are moved alike on a logit scale
# until they add up to what was counted.

SURE = 1e-3
"""No stream misses less, or more than all but this, before all are moved to what was counted."""
_LOGIT_MAX = 20.0


class Use(NamedTuple):
    """Reads, or writes, of one stream of one phase."""

    phase: PhaseFound
    place: int
    stream: Stream
    write: bool
    requests: float
    size_mean: float

    @property
    def in_order(self) -> float:
        """Share of its requests that a disk has in order: whole files lie one after the other."""
        return min(1.0, self.stream.seq_frac + (self.stream.begins_frac or 0.0))

    @property
    def references(self) -> float:
        """To pages: a random request touches one at least, sequential ones share theirs."""
        pages = self.size_mean / 4096
        return self.requests * (
            self.stream.seq_frac * pages + (1 - self.stream.seq_frac) * max(1.0, pages)
        )


def uses_of(phases: Sequence[PhaseFound]) -> tuple[Use, ...]:
    """Return reads and writes of every stream of every phase, where there are any."""
    return tuple(_uses(phases))


def _uses(phases: Sequence[PhaseFound]) -> Iterator[Use]:
    for phase in phases:
        for place, stream in enumerate(phase.streams):
            requests = phase.requests * stream.weight
            shares = (
                (False, stream.read_frac, stream.read_size_mean),
                (True, 1.0 - stream.read_frac, stream.write_size_mean),
            )
            for write, share, size_mean in shares:
                if share * requests > 0 and size_mean is not None:
                    yield Use(phase, place, stream, write, share * requests, size_mean)


@dataclass(frozen=True)
class Missed:
    """Miss ratios of every use at one size of cache, (uses,)."""

    lru: Floats
    two_lists: Floats | None


def misses_at(uses: Sequence[Use], reuse: Reuse, cache_bytes: float, more: float = 0.0) -> Missed:
    """Return what every use misses.

    Args:
        uses: of the whole application.
        reuse: of its pages.
        cache_bytes: of the cache.
        more: added to the counted LRU miss ratio, for its error from sampling.

    """
    pages = cache_bytes / reuse.page_bytes
    own = np.empty(len(uses))
    for phase in {use.phase.order for use in uses}:
        chosen = [at for at, use in enumerate(uses) if use.phase.order == phase]
        own[chosen] = _in_phase([uses[at] for at in chosen], pages)
    weights = np.array([use.references for use in uses])
    writes = np.array([use.write for use in uses])
    lru = own.copy()
    for write, counted in enumerate(reuse.lru_misses_apart(cache_bytes)):
        chosen_ = writes == bool(write)
        if chosen_.any():
            lru[chosen_] = moved(own[chosen_], weights[chosen_], counted + more)
    lists = reuse.two_lists_misses(cache_bytes)
    return Missed(lru, None if lists is None else moved(lru, weights, lists))


def moved(ratios: Floats, weights: Floats, wanted: float) -> Floats:
    """Move ratios alike on a logit scale until their weighted mean is what is wanted, (uses,)."""
    if wanted <= 0.0 or wanted >= 1.0:
        return np.full(ratios.size, min(1.0, max(0.0, wanted)))
    held = np.clip(ratios, SURE, 1 - SURE)
    logits = np.log(held / (1 - held))
    low, high = -_LOGIT_MAX, _LOGIT_MAX
    for _ in range(60):
        middle = (low + high) / 2
        mean = float(np.average(_expit(logits + middle), weights=weights))
        low, high = (middle, high) if mean < wanted else (low, middle)
    return _expit(logits + (low + high) / 2)


def _expit(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def _in_phase(uses: Sequence[Use], pages: float) -> Floats:
    """Miss ratios of the uses of one phase, as its streams alone would have it."""
    weights = np.array([use.references for use in uses])
    weights = weights / weights.sum()
    times = [use.stream.uses_apart for use in uses if use.stream.uses_apart is not None]
    longest = 4.0 * max([pages, *times])
    ages = np.concatenate([[0.0], np.geomspace(1.0, max(2.0, longest), 400)])
    unused = np.array([_unused(use.stream, ages) for use in uses])
    of_all = weights @ unused
    held = np.concatenate([[0.0], np.cumsum(np.diff(ages) * (of_all[1:] + of_all[:-1]) / 2)])
    stays = float(np.interp(pages, held, ages))
    return np.array([float(_unused(use.stream, np.array([stays]))[0]) for use in uses])


def _unused(stream: Stream, ages: Floats) -> Floats:
    """Share of a stream's references whose page is not used again within each age."""
    if stream.uses_apart is None:
        return np.ones(ages.size)
    if stream.kind == "loop":
        return np.asarray(1.0 - stream.seen_again * (ages >= stream.uses_apart))
    if stream.kind == "moving":
        return np.asarray(1.0 - stream.seen_again * (1.0 - np.exp(-ages / stream.uses_apart)))
    return _unused_since_begun(ages / stream.uses_apart, stream.seen_again)


def _unused_since_begun(ages: Floats, seen_again: float) -> Floats:
    """The same of a uniform stream that began with nothing used, in its times between uses.

    Its references are evenly spread over as long as it ran, x: of those at time a the share
    exp(-a) are compulsory misses, 1 - (1 - exp(-x)) / x in all are none, and of one that has been
    running for longer than an age t the share 1 - exp(-t) was used again within it.
    """
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        seen = 1.0 + math.expm1(-middle) / middle
        low, high = (middle, high) if seen < seen_again else (low, middle)
    ran = high
    within = np.minimum(ages, ran)
    again = 1.0 - np.exp(-within)
    return np.asarray(1.0 - (within - again + (ran - within) * again) / ran)
