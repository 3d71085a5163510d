"""How long an application would take on a surveyed system: its terms, its doubts, the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from leadline.models.application.levels import Levels, RequestKind
from leadline.models.application.misses import (
    CallTimes,
    Use,
    around,
    metadata_term,
    misses_at,
    sync_term,
    uses_of,
)
from leadline.models.model import Floats, PredictionRefused
from leadline.models.operation_time import PAGE_BYTES
from leadline.models.predictor import Predictor
from leadline.record import PROCESSES_MAX, Interval, Survey, Workload
from leadline.record.application import Application, PhaseFound, Reuse
from leadline.record.application.prediction import (
    ApplicationPrediction,
    CacheMisses,
    StreamTime,
    Term,
    TermName,
)
from leadline.record.finding import Finding
from leadline.stats import student_t

# How long an application's phases take in all, once its time in I/O is known.


def at_once(phase: PhaseFound) -> float:
    """Return the outstanding requests while any is; one where the trace tells nothing."""
    return max(1.0, phase.on_their_way or phase.workload.process_num or 1.0)


def traced_io_s(phases: Sequence[PhaseFound]) -> float | None:
    """Return the time in I/O where the application was traced; None where that is not known."""
    parts = [_in_io_s(phase) for phase in phases]
    return None if None in parts else sum(part or 0.0 for part in parts)


def _length_s(phase: PhaseFound) -> float | None:
    if phase.from_s is None or phase.to_s is None:
        return None
    return phase.to_s - phase.from_s


def _between_s(phase: PhaseFound) -> float:
    """Return the time without a read, write or sync outstanding; 0 where that is not known."""
    length, in_io = _length_s(phase), _in_io_s(phase)
    if length is None or in_io is None:
        return 0.0
    return length - in_io + min(in_io, phase.metadata_s or 0.0)


def _in_io_s(phase: PhaseFound) -> float | None:
    length = _length_s(phase)
    return None if length is None or phase.in_io is None else length * phase.in_io


def elapsed_of(
    phases: Sequence[PhaseFound], shares: Mapping[int, float], io: Interval
) -> tuple[Interval | None, str | None]:
    """Return the time in all, or why it is not known.

    What a phase does besides I/O it does elsewhere as long as it did where it was traced. A closed
    phase does one after the other; an open one is paced from outside, and takes as long as it did
    unless its I/O takes longer. One that may be either counts as closed.

    Args:
        phases: of the application.
        shares: of the time in I/O, by phase.
        io: time in I/O, of all phases.

    """
    lengths = [_length_s(phase) for phase in phases]
    ios = [_in_io_s(phase) for phase in phases]
    if None in lengths or None in ios:
        return None, (
            "the trace does not say how long requests took, so that what the application does "
            "besides I/O is not known"
        )

    def elapsed(io_s: float) -> float:
        total = 0.0
        for phase, length, in_io in zip(phases, lengths, ios, strict=True):
            own = io_s * shares.get(phase.order, 0.0)
            if phase.loop == "open":
                total += max(length or 0.0, own)
            else:
                total += (length or 0.0) - (in_io or 0.0) + own
        return total

    ends = [None if end is None else elapsed(end) for end in (io.low, io.high)]
    return Interval(elapsed(io.value), ends[0], ends[1], io.n), None


# What speaks against a prediction of an application.

IN_IO_MIN = 0.05
"""With a smaller share of its time in I/O storage hardly matters to an application."""
FIRST_TOUCHES_MAX = 0.5


def findings_of(application: Application, survey: Survey, levels: Levels) -> Iterator[Finding]:
    """Find it, worst first."""
    found, facts = application.found, application.start.facts
    if facts.below_the_cache:
        yield Finding.of("predicted_below_cache")
    if found.in_io is not None and found.in_io < IN_IO_MIN:
        yield Finding.of("predicted_of_little_io", io_frac=found.in_io)
    if found.reuse.first_touches > FIRST_TOUCHES_MAX:
        yield Finding.of("predicted_first_touches", first_frac=found.reuse.first_touches)
    if any(
        phase.on_their_way is None and phase.workload.process_num is None
        for phase in application.phases
    ):
        yield Finding.of("depth_unknown")
    yield from levels.found
    yield from _about_caches(found.reuse, levels.boundaries, survey)
    if survey.start.access.direct:
        yield Finding.of("file_cache_not_surveyed")
    for each in found.findings:
        yield msgspec.structs.replace(each, where="application")


def _about_caches(
    reuse: Reuse, boundaries: Sequence[Interval], survey: Survey
) -> Iterator[Finding]:
    if not boundaries:
        yield Finding.of("no_boundary_surveyed", system=survey.start.system)
    for boundary in boundaries:
        if reuse.two_lists_misses(boundary.value) is None:
            yield Finding.of("two_lists_unknown", cache_bytes=boundary.value)


# What a survey has to know of an application to predict it.

NEEDED_MOST = 8
"""Kinds of requests, those that move most bytes."""
BEGINS_MATTER = 0.05
"""Of a stream's reads, those that begin a file."""


def needed_of(application: Application) -> tuple[Workload, ...]:
    """Return a workload for each of its main kinds of requests, as far as its data reach."""
    reuse, found = application.found.reuse, dict[Workload, float]()
    for use in uses_of(application.phases):
        size = 2 ** max(9, round(math.log2(use.size_mean)))
        kind = Workload(
            unique_bytes=max(4 * size, round(reuse.unique_pages * reuse.page_bytes)),
            size_mean=size,
            read_frac=0.0 if use.write else 1.0,
            seq_frac=round(4 * use.in_order) / 4,
            process_num=min(PROCESSES_MAX, round(at_once(use.phase))),
            size_dist="fixed" if use.size_mean % PAGE_BYTES == 0 else "normal",
        )
        moved_bytes = use.requests * max(size, reuse.page_bytes)
        found[kind] = found.get(kind, 0.0) + moved_bytes
        begins = 0.0 if use.write else use.stream.begins_frac or 0.0
        if begins > BEGINS_MATTER:  # the files are found page by page, not in order
            page = msgspec.structs.replace(
                kind, size_mean=reuse.page_bytes, seq_frac=0.0, size_dist="fixed"
            )
            found[page] = found.get(page, 0.0) + begins * moved_bytes
    return tuple(sorted(found, key=lambda kind: -found[kind])[:NEEDED_MOST])


# An application predicted on a surveyed system: time in I/O by what it is for, and in all.

SIDE_SD = 1.96
"""Standard deviations from an interval's middle to its end."""


APART_SD = 0.7
"""Of ln time, between programs and what a survey says of their description: the root mean square of
56 predictions of the programs of bench/applications.py on a disk, in two runs of it."""
RUN_SD = 0.1
"""From one run of an application to the next."""


def predict_application(
    application: Application, predictor: Predictor, traced_on: Predictor | None = None
) -> ApplicationPrediction:
    """Return the time that an application would take on a surveyed system.

    Args:
        application: as it was described.
        predictor: of the system.
        traced_on: of the system where it was traced. What its reads, writes and syncs took there,
            over what this one predicts of them, scales what `predictor` does, as far as its survey
            is sure: an error that both share cancels (Mesnier et al., "Modeling the relative
            fitness of storage", SIGMETRICS 2007).

    Raises:
        PredictionRefused: a survey is not finished, or the description has no streams; with
            `traced_on` also where the trace does not say how long its requests took.

    """
    uses = uses_of(application.phases)
    if not uses:
        raise PredictionRefused(
            f"{application.start.system} has no streams to predict; characterise a longer trace"
        )
    there_us = None if traced_on is None else traced_on.survey.start.call_us
    here = _at(application, uses, predictor, there_us)
    _, own_ln_sd = _total(here.terms, predictor.model.df, predictor.model.n)
    if traced_on is not None:
        if traced_io_s(application.phases) is None:
            raise PredictionRefused(
                f"the trace of {application.start.system} does not say how long its requests took, "
                "which is what --traced-on goes by: leave it out"
            )
        here = here.scaled(_at(application, uses, traced_on, None))
    else:
        here = replace(here, terms=tuple(map(_apart, here.terms)))
    terms, levels, reuse = here.terms, here.levels, application.found.reuse
    df, start = predictor.model.df, predictor.survey.start
    io, ln_sd = _total(terms, df, predictor.model.n)
    shares = _shares(uses, here.seconds)
    elapsed, because = elapsed_of(application.phases, shares, io)
    return ApplicationPrediction(
        application=application.start.system,
        application_id=application.start.study_id,
        system=start.system,
        survey_id=start.study_id,
        traced_on=None if traced_on is None else traced_on.survey.start.system,
        model=predictor.model.name,
        io_s=io,
        io_at_least=any(term.seconds is None for term in terms),
        elapsed_s=elapsed,
        elapsed_because=because,
        traced_io_s=traced_io_s(application.phases),
        traced_s=application.found.seconds,
        ln_sd=ln_sd,
        own_ln_sd=own_ln_sd,
        df=df,
        terms=terms,
        caches=tuple(_caches(reuse, levels.boundaries, here.held_bytes)),
        streams=tuple(_stream_times(uses, here.seconds, here.misses)),
        findings=tuple(findings_of(application, predictor.survey, levels)),
    )


@dataclass(frozen=True)
class _At:
    """An application on one surveyed system."""

    uses: Sequence[Use]
    terms: tuple[Term, ...]
    levels: Levels
    held_bytes: int
    seconds: Floats
    """Of each use, (uses,)."""
    misses: Floats
    """(uses, boundaries)"""

    def scaled(self, there: _At) -> _At:
        """Scale by what it took where it was traced, over what is predicted there."""
        terms = tuple(map(_scaled, self.terms, there.terms))
        factors = {
            term.name: term.seconds.value / own.seconds.value
            for term, own in zip(terms, self.terms, strict=True)
            if term.seconds and own.seconds and own.seconds.value > 0
        }
        own = [factors.get("writes" if use.write else "reads", 1.0) for use in self.uses]
        return replace(self, terms=terms, seconds=self.seconds * own)


def _apart(term: Term) -> Term:
    """Widen what nobody scales by how far programs are from their descriptions."""
    if term.seconds is None or not term.seconds.value > 0:
        return term
    value, half = term.seconds.value, math.hypot(_half(term.seconds), SIDE_SD * APART_SD)
    return msgspec.structs.replace(term, seconds=around(value, half, term.seconds.n))


def _half(known: Interval) -> float:
    """Half the width of an interval in logarithms."""
    return math.log((known.high or known.value) / known.value)


def _scaled(here: Term, there: Term) -> Term:
    """Correct one that both surveys know by what its program is off, as far as that can be told.

    How far is normal with a standard deviation of `APART_SD`; the run that was traced tells it as
    well as the survey of where that was predicts. What took less there than is predicted takes the
    same share of it here. What took more does something that no survey measures, and does it here
    too: the time is added. How far a share would lie from that is one more thing that is not known.
    """
    if here.seconds is None or here.name == "metadata":  # scaled call by call
        return here
    if there.seconds is None or not (here.traced_s and here.seconds.value and there.seconds.value):
        return _apart(here)
    own, told = ((_half(each) / SIDE_SD) ** 2 for each in (here.seconds, there.seconds))
    share = APART_SD**2 / (APART_SD**2 + told + RUN_SD**2)
    in_share = here.seconds.value * (here.traced_s / there.seconds.value) ** share
    more_s = share * max(0.0, here.traced_s - there.seconds.value)
    value = here.seconds.value + more_s if more_s else in_share
    ways = math.log(in_share / value) / 2
    half = SIDE_SD * math.sqrt(own + (1 - share) * APART_SD**2 + RUN_SD**2 + ways**2)
    return msgspec.structs.replace(here, seconds=around(value, half, here.seconds.n))


def _at(
    application: Application, uses: Sequence[Use], predictor: Predictor, there_us: CallTimes | None
) -> _At:
    reuse, start = application.found.reuse, predictor.survey.start
    levels = Levels(predictor, reuse.unique_pages * reuse.page_bytes)
    held_bytes = 0 if start.access.direct else application.start.facts.memory_bytes
    asked = _Asked(uses, reuse, levels, waits=start.access.waits, held_bytes=held_bytes)
    summed, df = asked.summed(), predictor.model.df
    syncs = sync_term(application.phases, levels, start.access)
    known = not start.access.waits or syncs.calls > 0
    terms = (
        _requests("reads", uses, summed, df, known=True),
        _requests("writes", uses, summed, df, known=known),
        syncs,
        metadata_term(application.phases, start.call_us, there_us, df),
    )
    made = tuple(term for term in terms if term.calls)
    return _At(uses, made, levels, held_bytes, summed.seconds, summed.misses)


@dataclass(frozen=True)
class _Summed:
    """Seconds of each use, (uses,), and what they rest on."""

    seconds: Floats
    ln_sd: float
    """Of all of them; reads and writes are as sure, or unsure, together."""
    misses: Floats
    """(uses, boundaries)"""


@dataclass
class _Asked:
    """Uses with what a request of each costs at each level."""

    uses: Sequence[Use]
    reuse: Reuse
    levels: Levels
    waits: bool
    """Whether the survey's writes waited for the device: what others cost is then what a copy
    into the page cache does, as that of a read found there; a sync is a term of its own."""
    held_bytes: int
    """Of memory, by the application itself: a page cache has the rest."""

    def __post_init__(self) -> None:
        self.costs = self.levels.costs([self._kind(use) for use in self.uses])
        self.begins = [
            at
            for at, use in enumerate(self.uses)
            if not use.write and (use.stream.begins_frac or 0.0) > 0
        ]
        pages = [
            RequestKind(float(self.reuse.page_bytes), write=False, seq_frac=seq, at_once=own)
            for own in (at_once(self.uses[at].phase) for at in self.begins)
            for seq in (0.0, 1.0)
        ]
        self.pages = self.levels.costs(pages) if pages else []

    def _kind(self, use: Use) -> RequestKind:
        write = use.write and not self.waits
        return RequestKind(use.size_mean, write, use.in_order, at_once(use.phase))

    def _begun(self, misses: Floats) -> tuple[Floats, Floats]:
        """Return seconds of each use that go to finding files, and their deviations, (uses,).

        The first byte of a file that is not cached takes what a page at random does over one in
        order; nothing reads it ahead. A file that is written is found when it is written back.
        """
        found = np.zeros((len(self.uses), 2))
        for at, random, ordered in zip(self.begins, self.pages[::2], self.pages[1::2], strict=True):
            (apart, sd), (along, _) = random.at(misses[at]), ordered.at(misses[at])
            begins = self.uses[at].requests * (self.uses[at].stream.begins_frac or 0.0)
            found[at] = begins * max(0.0, apart - along), begins * sd
        return found[:, 0], found[:, 1]

    def summed(self) -> _Summed:
        """Add up the seconds, under both policies and at both ends of what is not known."""
        lru, lists = self._misses(self._sizes)
        both = [self._seconds(each)[0] for each in (lru, lists)]
        middle = (lru + lists) / 2
        seconds, sd = self._seconds(middle)
        total = float(seconds.sum())
        policy = abs(math.log(both[0].sum() / both[1].sum())) / 2
        return _Summed(
            seconds,
            math.hypot(float(sd.sum()) / total, policy, self._size_sd(), self._sample_sd(total)),
            middle,
        )

    @property
    def _sizes(self) -> list[float]:
        return [self._left(boundary.value) for boundary in self.levels.boundaries]

    def _left(self, cache_bytes: float) -> float:
        """What of a cache is left for the application's data; a page at least."""
        return max(float(self.reuse.page_bytes), cache_bytes - self.held_bytes)

    def _misses(self, sizes: Sequence[float], more: float = 0.0) -> tuple[Floats, Floats]:
        """Return what each use misses at each boundary, by LRU and by active/inactive LRU."""
        lru, lists = (np.zeros((len(self.uses), len(sizes))) for _ in range(2))
        for boundary, size in enumerate(sizes):
            found = misses_at(self.uses, self.reuse, size, more)
            lru[:, boundary] = found.lru
            lists[:, boundary] = found.lru if found.two_lists is None else found.two_lists
        return lru, lists

    def _middle(self, sizes: Sequence[float], more: float = 0.0) -> Floats:
        lru, lists = self._misses(sizes, more)
        return (lru + lists) / 2

    def _seconds(self, misses: Floats) -> tuple[Floats, Floats]:
        """Return seconds of each use, and their standard deviations by the model, (uses,)."""
        missed = [
            np.zeros_like(each) if use.write and self.waits else each
            for use, each in zip(self.uses, misses, strict=True)
        ]
        found = [cost.at(each) for cost, each in zip(self.costs, missed, strict=True)]
        requests = np.array([use.requests for use in self.uses])
        seconds = requests * [each for each, _ in found]
        own = requests * [
            max(cost.at(np.zeros_like(each))[0], cost.cpu_at(each))
            for cost, each in zip(self.costs, missed, strict=True)
        ]
        kept = 1.0 - self._behind(np.maximum(0.0, seconds - own)) / np.maximum(seconds, 1e-300)
        begun, begun_sd = self._begun(misses)
        return seconds * kept + begun, kept * requests * [sd for _, sd in found] + begun_sd

    def _behind(self, beyond_s: Floats) -> Floats:
        """Share of each use's seconds that pass while the application does something else.

        Read-ahead of sequential reads and the writing back of what nobody waits for go on then.

        Args:
            beyond_s: of its seconds, those beyond what it takes in the first cache and beyond its
                processor's.

        """
        behind = np.array([1.0 if use.write else use.stream.seq_frac for use in self.uses])
        hidden_s: Floats = beyond_s * behind
        for phase in {use.phase.order: use.phase for use in self.uses}.values():
            own = [at for at, use in enumerate(self.uses) if use.phase.order == phase.order]
            if (total_s := hidden_s[own].sum()) > 0:
                hidden_s[own] *= min(1.0, _between_s(phase) / total_s)
        return hidden_s

    def _size_sd(self) -> float:
        """Standard deviation of ln seconds from what is not known of the caches' sizes."""
        ends = [
            self._middle([self._left(_end(each, low=low)) for each in self.levels.boundaries])
            for low in (True, False)
        ]
        few, many = (float(self._seconds(each)[0].sum()) for each in ends)
        return abs(math.log(few / many)) / (2 * SIDE_SD)

    def _sample_sd(self, total: float) -> float:
        """The same from the sampling of the trace's pages."""
        sizes = self._sizes
        error = max([self.reuse.lru_error(size) for size in sizes], default=0.0)
        if error == 0.0:
            return 0.0
        more = self._seconds(self._middle(sizes, error))[0].sum()
        return abs(math.log(float(more) / total))


def _end(boundary: Interval, *, low: bool) -> float:
    end = boundary.low if low else boundary.high
    return boundary.value if end is None else end


def _requests(
    name: TermName, uses: Sequence[Use], summed: _Summed, df: float, *, known: bool
) -> Term:
    own = [at for at, use in enumerate(uses) if use.write == (name == "writes")]
    phases = {use.phase.order: use.phase for use in uses}.values()
    traced = [phase.write_s if name == "writes" else phase.read_s for phase in phases]
    seconds = float(summed.seconds[own].sum())
    return Term(
        name=name,
        calls=round(sum(uses[at].requests for at in own)),
        seconds=_interval(seconds, summed.ln_sd, df, len(uses)) if known else None,
        traced_s=None if None in traced else sum(each or 0.0 for each in traced),
        because=None
        if known
        else "the survey's writes all waited for the device, and the application's never do",
    )


def _interval(seconds: float, ln_sd: float, df: float, n: int) -> Interval:
    return around(seconds, student_t(df) * ln_sd, n)


def _total(terms: Sequence[Term], df: float, n: int) -> tuple[Interval, float]:
    """Add up the terms that are known; their errors are of one model and count as one."""
    known = [term.seconds for term in terms if term.seconds is not None]
    seconds = sum(each.value for each in known)
    if seconds <= 0:
        return Interval(0.0, None, None, n), 0.0
    ln_sd = sum(each.value * _half(each) for each in known) / seconds / student_t(df)
    return _interval(seconds, ln_sd, df, n), ln_sd


def _shares(uses: Sequence[Use], each_s: Floats) -> dict[int, float]:
    """Share of the requests' time that each phase has."""
    found: dict[int, float] = {}
    for use, seconds in zip(uses, each_s, strict=True):
        found[use.phase.order] = found.get(use.phase.order, 0.0) + float(seconds)
    total = sum(found.values())
    return {phase: seconds / total for phase, seconds in found.items()}


def _caches(reuse: Reuse, boundaries: Sequence[Interval], held_bytes: int) -> Iterator[CacheMisses]:
    for boundary in boundaries:
        left_bytes = max(float(reuse.page_bytes), boundary.value - held_bytes)
        yield CacheMisses(
            cache_bytes=boundary,
            lru=reuse.lru_misses(left_bytes),
            two_lists=reuse.two_lists_misses(left_bytes),
        )


def _stream_times(uses: Sequence[Use], seconds: Floats, misses: Floats) -> Iterator[StreamTime]:
    for at, use in enumerate(uses):
        yield StreamTime(
            phase=use.phase.order,
            stream=use.place,
            kind=use.stream.kind,
            write=use.write,
            requests=use.requests,
            size_mean=use.size_mean,
            misses=tuple(float(each) for each in misses[at]),
            seconds=float(seconds[at]),
        )
