"""What the sub-commands of `leadline stream` do with what was typed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from leadline.engine import Stopped, open_streams
from leadline.errors import LeadlineError, UsageRefused
from leadline.record.job import StreamJob
from leadline.record.streaming import (
    STREAM,
    Capacities,
    CheckResult,
    KernelName,
    StreamResult,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.record.study import A_co, Answer, Item, Records, S_co, Status, StudyStart
from leadline.record.wording import format_count
from leadline.store import Store, StoreError
from leadline.studies.conduct import conduct
from leadline.studies.resume import format_kept
from leadline.studies.streaming import rank_started
from leadline.studies.streaming.cluster import ranks_started
from leadline.studies.streaming.plan import Planned, Wanted, plan_check, plan_records, plan_run
from leadline.studies.streaming.run import begin_stream, kept_before, run_stream_on_ranks
from leadline.studies.streaming.study import KernelRuns
from leadline.studies.streaming.text import result_document
from leadline.terminal.context import Context
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.watch import Teller
from leadline.units import format_bytes, format_rate, format_seconds

_FIRST_SAYS_S = 30.0
"""A refused rank waits so long to be ended: the launcher ends all ranks when the first, refused for
the same reason, has said why and ends. Where the first is not, it says why itself."""


class RecordsWrong(LeadlineError):
    """Records are not what they should be."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is told, and where else it goes."""

    json: bool = False
    output: Path | None = None
    cache_limit_bytes: int | None = None
    bound: bool | None = None
    """True: measured again; False: none; None: measured once a day."""
    resume: bool = False


def run_kernel(
    context: Context, kernel: KernelName, wanted: Wanted, shown: Shown, **shape: Any
) -> None:
    """Plan, run, keep and show one kernel; on every rank of a cluster, of which the first tells."""
    ranks = ranks_started()
    wanted = msgspec.structs.replace(wanted, ranks=ranks)
    try:
        _run_kernel(context, kernel, wanted, shown, shape)
    except LeadlineError as error:
        if rank_started() > 0:
            try:
                time.sleep(_FIRST_SAYS_S)
            except Stopped:
                sys.exit(getattr(error, "exit_code", 1))
        raise


def _run_kernel(
    context: Context, kernel: KernelName, wanted: Wanted, shown: Shown, shape: dict[str, Any]
) -> None:
    require_stream_output(shown.output)
    planned = plan_run(kernel, wanted, capacities=shown.bound is not False, **shape)
    _require_one_process(wanted.ranks, shown)
    if rank_started() > 0:
        start = begin_stream(planned)
        with open_streams() as streams:
            run_stream_on_ranks(planned, start, streams, _Nowhere(), tell=_tell_end)
        return
    store = context.open_store()
    runs = KernelRuns(
        planned,
        anew=shown.bound is True,
        cache_limit_bytes=shown.cache_limit_bytes,
        tell_end=_tell_end,
    )
    study = conduct(runs, store, _Teller(planned), resume=shown.resume)
    print_stream(study, store, json=shown.json, output=shown.output)
    talk(f"wrote {wanted.destination}")


def _require_one_process(ranks: int, shown: Shown) -> None:
    for option, asked in (
        ("--cache-limit", shown.cache_limit_bytes is not None),
        ("--resume", shown.resume),
    ):
        if ranks > 1 and asked:
            raise UsageRefused(f"{option} is for one process; leave it out under mpirun")


def _tell_end(text: str) -> None:
    """Say why this rank ends all of them, at once: the launcher kills it in a moment."""
    os.write(sys.stderr.fileno(), f"leadline: {text}\n".encode())


class _Nowhere:
    """Ranks other than the first keep nothing."""

    def begin(self, records: Records[S_co, A_co], start: StudyStart) -> None:
        """Forget it."""

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        """Forget it."""

    def end(self, study_id: str, answer: Answer, status: Status) -> None:
        """Forget it."""


class _Teller(Teller):
    """Tells what the machine can do; of runs that are stopped, how they go on."""

    def __init__(self, planned: Planned) -> None:
        super().__init__(lambda start, _: _tell_plan(planned, start))
        self._planned = planned

    def ended(self, item: Capacities | StreamRun) -> None:
        if isinstance(item, Capacities):
            _tell_capacities(item)

    def stopped(self, store: Store, start: StreamStart, error: BaseException) -> None:
        with suppress(StoreError):  # stopped before anything was kept
            done, planned = len(kept_before(store, start.study_id).study.runs), self._planned.runs
            if 0 < done < planned:
                options = "--resume --replace"  # the output of the runs before lies there
                talk(format_kept(done, planned, start.study_id, what="runs", options=options))


def _tell_plan(planned: Planned, start: StreamStart) -> None:
    options = planned.options
    parties = (
        format_count(options.ranks, "rank")
        if options.ranks > 1
        else format_count(options.threads, "thread")
    )
    talk(
        f"stream {start.study_id[:8]} of {planned.system}: {options.kernel} of "
        f"{format_bytes(planned.data_bytes)} on {parties} and "
        f"{format_count(len(start.directories), 'disk')} in {format_bytes(options.memory_bytes)} "
        f"of memory; ends within {format_seconds(planned.job.total_s_max)}"
    )


def _tell_capacities(found: Capacities) -> None:
    network = ""
    if found.network_mb_s is not None:
        network = f", network {format_rate(found.network_mb_s.value)} for each rank"
    talk(
        f"this machine can: read {format_rate(found.all_read_mb_s.value)}, write "
        f"{format_rate(found.all_write_mb_s.value)}, both at once "
        f"{format_rate(found.all_both_mb_s.value)}; copy memory "
        f"{format_rate(found.memory_copy_mb_s.value)}{network}"
    )


def print_stream(study: StreamStudy, store: Store, *, json: bool, output: Path | None) -> None:
    """Show a study, and draw it where that was asked for."""
    from leadline.studies.registry import KINDS  # noqa: PLC0415 - one rank of many tells
    from leadline.terminal.tell import draw, tell  # noqa: PLC0415 - one rank of many tells

    kind = KINDS[STREAM.kind]
    tell(study, kind, json=json)
    if output is not None:
        draw(store, study, kind, output, ())


def require_stream_output(output: Path | None) -> None:
    """Refuse a file that could not be written after the run."""
    if output is not None:
        from leadline.studies.registry import KINDS  # noqa: PLC0415 - as above
        from leadline.terminal.tell import require_output  # noqa: PLC0415 - as above

        require_output(output, KINDS[STREAM.kind])


def make_records(
    wanted: Wanted, records: int, record_format: str, skew: float, *, json: bool
) -> None:
    """Generate records."""
    _require_alone("generate")
    job = plan_records(wanted, records, record_format, skew)
    result = _one_job(job)
    if json:
        put_json(result_document(result))
        return
    rate = result.bytes_out / result.seconds / 1e6 if result.seconds > 0 else 0.0
    talk(
        f"{job.output.path if job.output else ''}: {records:,} records, "
        f"{format_bytes(result.bytes_out)} in {format_seconds(result.seconds)} "
        f"({format_rate(rate)})"
    )
    if result.check is not None:
        talk(f"Checksum: {result.check.checksum}")


def check_records(
    wanted: Wanted,
    *,
    against: str | None,
    records: int | None,
    checksum: str | None,
    any_order: bool,
    json: bool,
) -> None:
    """Check records, and hold them against what they should be.

    Raises:
        RecordsWrong: they are not.

    """
    _require_alone("check")
    checksum = None if checksum is None else _sum_of(checksum)
    result = _one_job(plan_check(wanted))
    found = _checked(result)
    if against is not None:
        other = _checked(_one_job(plan_check(msgspec.structs.replace(wanted, source=against))))
        records, checksum = other.records, other.checksum
    wrong = list(_wrong(found, records, checksum, any_order=any_order))
    if json:
        put_json(result_document(result) | {"right": not wrong, "wrong": wrong})
    else:
        _tell_check(result, found, wrong)
    if wrong:
        raise RecordsWrong(f"{wanted.source} is wrong: {'; '.join(wrong)}")


def _sum_of(text: str) -> str:
    """Return a checksum as the engine writes it."""
    try:
        return f"{int(text, 16):x}"
    except ValueError:
        raise UsageRefused(
            f"--checksum {text!r} is no number in hexadecimal digits; `leadline stream check SRC` "
            "prints the one of its data"
        ) from None


def _wrong(
    found: CheckResult, records: int | None, checksum: str | None, *, any_order: bool
) -> Sequence[str]:
    said = []
    if records is not None and found.records != records:
        less = "missing" if found.records < records else "too many"
        said.append(
            f"it has {found.records:,} records and should have {records:,} "
            f"({abs(records - found.records):,} {less})"
        )
    if checksum is not None and found.checksum != checksum:
        said.append(
            f"its checksum is {found.checksum} and should be {checksum}: records were "
            "changed, lost or doubled"
        )
    if found.unordered and not any_order:
        said.append(
            f"out of order: {format_count(found.unordered, 'record')}, the first is number "
            f"{found.first_unordered}"
        )
    return said


def _tell_check(result: StreamResult, found: CheckResult, wrong: Sequence[str]) -> None:
    """Say what valsort says; of records that are not what they should be no SUCCESS."""
    order = "SUCCESS - all records are in order"
    if wrong:
        order = "FAILURE - all records are in order, but they are not those asked for"
    if found.unordered:
        order = f"First unordered record is record {found.first_unordered}"
    show(
        f"Records: {found.records}\nChecksum: {found.checksum}\n"
        f"Duplicate keys: {found.duplicate_keys}\n{order}"
    )
    rate = result.bytes_in / result.seconds / 1e6 if result.seconds > 0 else 0.0
    talk(f"read in {format_seconds(result.seconds)} ({format_rate(rate)})")


def _checked(result: StreamResult) -> CheckResult:
    if result.check is None:
        raise LeadlineError("the engine has checked nothing; this is a defect in Leadline")
    return result.check


def _one_job(job: StreamJob) -> StreamResult:
    with open_streams() as streams:
        return streams.run(job)


def _require_alone(command: str) -> None:
    if rank_started() > 0:  # the first rank says why
        sys.exit(UsageRefused.exit_code)
    if ranks_started() > 1:
        raise UsageRefused(
            f"leadline stream {command} runs on one process, not on {ranks_started()} ranks: "
            "start it without mpirun, with --threads"
        )
