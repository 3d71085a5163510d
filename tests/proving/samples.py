"""Small, valid documents for tests; nothing in them was measured."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record import (
    Access,
    CachePlan,
    CacheSize,
    CacheStart,
    CacheStudy,
    Curve,
    EngineResult,
    Evidence,
    FileCache,
    Interval,
    IntervalRecord,
    LatencyUs,
    Measurement,
    MovedBytes,
    OperationSummary,
    Plan,
    PlanStage,
    Realised,
    Status,
    Survey,
    SurveyStart,
    Validation,
    ValidationPlan,
    ValidationStart,
    WarmUp,
    Workload,
    WritePolicy,
)
from leadline.record.file_cache import CACHE
from leadline.record.files import (
    FILES,
    CellMeasured,
    FilesCell,
    FilesRow,
    FilesStart,
    FilesStudy,
    FileSystemUnderTest,
    SizeChosen,
)
from leadline.record.finding import Finding
from leadline.record.jobs.file_test import FILE_PROGRAMS, DriveRun, FileRun, RawRun
from leadline.record.measurement import (
    MEASUREMENT,
    RUN_STAGE,
    MeasurementAsked,
    MeasurementStart,
    WorkloadAsked,
)
from leadline.record.streaming import (
    STREAM,
    CapacitiesKnown,
    PhaseResult,
    RunEnded,
    StreamOptions,
    StreamResult,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.record.study import Answer, ElapsedAnswer, Records, StudyStart, TextAnswer
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.workbench import (
    EXPERIMENT,
    Batch,
    ExperimentAnswer,
    ExperimentStart,
    Factor,
    Goal,
    Load,
    Measured,
    PeakKnown,
    PeakRate,
    PeakVerdict,
    Prior,
    ResponseMs,
    SampleBegun,
    SimulatedServer,
    Threshold,
    Trial,
    TrialEnded,
    TrialRequest,
    TrialState,
)
from leadline.store import Keeper
from leadline.studies.measurement.plan import runs_group
from proving.application_sample import stored_application
from proving.study_sample import StudySample

WORKLOAD = Workload(unique_bytes=64 * 2**20, size_mean=32 * 1024)


def sample_result(job_id: str = "job-1", mb_s: float = 100.0) -> EngineResult:
    """Return a result of this throughput."""
    latency = LatencyUs(mean=300.0, p50=250.0, p90=400.0, p99=900.0, p99_9=1500.0, max=2000.0)
    return EngineResult(
        version=1,
        job_id=job_id,
        throughput_mb_s=Interval(mb_s, mb_s * 0.9, mb_s * 1.1, 20),
        iops=Interval(3000.0, None, None, 1),
        latency_us=latency,
        read=OperationSummary(operations=1500, bytes=50_000_000, latency_us=latency),
        write=OperationSummary(operations=0, bytes=0, latency_us=None, histogram=((3, 4),)),
        wall_s=1.0,
        total_s=3.0,
        prepare_s=1.0,
        cpu_user=0.1,
        cpu_system=0.2,
        io_share=0.9,
        littles_law_error_frac=0.01,
        workload_bytes=MovedBytes(read=50_000_000, write=50_000_000),
        device_bytes=None,
        cached_share=None,
        cache_resident_bytes=None,
        foreign_cpu=0.0,
        realised=Realised(size_mean=32768.0, size_cv=0.9, read_frac=0.5, seq_frac=0.5),
        warm_up=WarmUp(seconds=1.0, steady=True),
        intervals=(IntervalRecord(start_s=0.0, seconds=0.1, operations=300, bytes=10_000_000),),
        admissible=True,
        findings=(Finding.of("no_interval"), Finding.of("measured_by_fio")),
    )


def sample_point(point_id: str, order: int = 0, mb_s: float = 100.0) -> Measurement:
    """Return a point of a study."""
    return Measurement(
        point_id=point_id,
        order=order,
        stage="unique_bytes",
        started_at="2026-01-02T03:04:05+00:00",
        clock_s=order * 3.0,
        seed=2**64 - 1,
        workload=WORKLOAD,
        backend="pread",
        result=sample_result(f"job-{order}", mb_s),
    )


def sample_start(study_id: str = "survey-a", system: str = "disk") -> SurveyStart:
    """Return the start of a survey."""
    plan = Plan(
        stages=(PlanStage("unique_bytes", 16, "where the levels end"),),
        budget_s=300.0,
        expected_s=250.0,
        point_s=5.0,
        layout_bytes=2**30,
        unique_bytes_min=2**20,
        unique_bytes_max=2**30,
        size_mean_min=1024,
        size_mean_max=2**20,
        process_num_max=8,
    )
    return SurveyStart(
        study_id=study_id,
        system=system,
        target="/data",
        seed=1,
        started_at="2026-01-02T03:04:05+00:00",
        focal_mode="middle",
        backend="pread",
        direct=False,
        cache_limit_bytes=None,
        accuracy=0.05,
        plan=plan,
        facts={"cpu_count": 2, "device_model": None, "mount_options": "rw"},
    )


def sample_survey(start: SurveyStart, status: Status = Status.DONE) -> Survey:
    """Return an answer that found nothing."""
    return Survey(
        start=start,
        status=status,
        wall_s=12.5,
        points=0,
        regions=(),
        boundaries=(),
        unique_bytes_curve=Curve(
            parameter="unique_bytes",
            region=None,
            points=(),
            focal=WORKLOAD,
            good_low=None,
            good_high=None,
        ),
        slope=(),
        families=(),
        cache_bytes=None,
        sentinels=(),
        drift_frac=None,
        noise_frac={},
        accuracy_frac=None,
        settled=True,
        cross_check_bytes=(),
        sentences=("Nothing was found.",),
        findings=(),
    )


def sample_validation_start(
    study_id: str = "validation-a", parent: str = "survey-a"
) -> ValidationStart:
    """Return the start of a validation."""
    stages = (PlanStage("pass 1", 4, "random workloads"), PlanStage("pass 2", 4, "once more"))
    plan = ValidationPlan(stages=stages, budget_s=60.0, point_s=5.0, layout_bytes=2**30)
    return ValidationStart(
        study_id=study_id,
        parent=parent,
        system="disk",
        target="/data",
        seed=2**63 - 1,
        started_at="2026-01-02T04:04:05+00:00",
        count=4,
        backend="pread",
        direct=False,
        cache_limit_bytes=None,
        accuracy=0.05,
        plan=plan,
        ranges=(),
        singles=(),
        facts={"cpu_count": 2, "device_model": None},
    )


def sample_validation(start: ValidationStart, status: Status = Status.DONE) -> Validation:
    """Return an answer that scored nothing."""
    return Validation(
        start=start,
        status=status,
        wall_s=30.5,
        points=0,
        n=0,
        model="product",
        inherent_error=None,
        scores=(),
        workloads=(),
        drift=(),
        drift_frac=None,
        drift_within_frac=None,
        sentences=("Nothing was scored.",),
        findings=(),
    )


def sample_files_study(study_id: str = "files-a") -> FilesStudy:
    """Return a finished study of plain files: one file system on one drive, two programs."""
    system = FileSystemUnderTest(fs="ext4", block_bytes=4096, made=False)
    start = FilesStart(
        study_id=study_id,
        system="tiny-files",
        directories=("/data",),
        storage="vda",
        started_at="2026-11-21T10:00:00+00:00",
        paper=False,
        runs=2,
        budget_s=60.0,
        seed=2**63,
        cells=(FilesCell(system=system, drives=1),),
        facts={"cpu_count": 2},
    )
    drive = DriveRun(seconds=0.5, sync_s=0.1, cpu_s=0.2, cached_share=None)
    run = FileRun(seconds=0.5, device_read_bytes=None, drives=(drive,), raw=RawRun(8192, 0.1))
    rows = tuple(
        FilesRow(
            test=test,
            fs="ext4",
            block_bytes=4096,
            made=False,
            drives=1,
            kbytes_s=Interval(16.0, None, None, 1),
            cpu_percent=Interval(40.0, None, None, 1),
            raw_percent=Interval(20.0, None, None, 1),
            runs=(run, run),
        )
        for test in FILE_PROGRAMS[:2]
    )
    return FilesStudy(
        start=start, status=Status.DONE, file_bytes=8192, rows=rows, sentences=("Done.",)
    )


def sample_phase(name: str, *, read: int = 0, written: int = 0) -> PhaseResult:
    """Return a phase of one second in which nothing could be counted but time and bytes."""
    return PhaseResult(
        name=name,
        seconds=1.0,
        bytes_read=read,
        bytes_written=written,
        cpu_user_s=0.25,
        cpu_system_s=0.125,
        instructions=None,
        cycles=None,
        switches_voluntary=10,
        switches_involuntary=1,
        faults_minor=100,
        faults_major=0,
        block_read_bytes=read,
        block_written_bytes=written,
        memory_bus_bytes=None,
        network_sent_bytes=0,
        network_received_bytes=0,
        copied_bytes=0,
        first_done_s=0.75,
        last_done_s=1.0,
    )


def sample_stream_study(study_id: str = "stream-a") -> StreamStudy:
    """Return a finished stream study: a sort in one pass, run twice."""
    start = StreamStart(
        study_id=study_id,
        system="tiny-stream",
        purpose="run",
        directories=("/data",),
        started_at="2026-11-22T10:00:00+00:00",
        seed=2**63,
        facts={"cpu_count": 2},
    )
    size = 100_000_000
    result = StreamResult(
        version=1,
        kind="stream",
        job_id="stream-1",
        kernel="sort",
        passes=1,
        bytes_in=size,
        bytes_out=size,
        seconds=2.0,
        phases=(sample_phase("read", read=size), sample_phase("write", written=size)),
        not_measurable={"instructions": "this machine has no counters"},
        memory_bus_counter="none",
        memory_peak_bytes=64 * 2**20,
        verified=True,
        verify_s=0.5,
        check=None,
        capacity=None,
    )
    runs = tuple(
        StreamRun(
            options=StreamOptions(kernel="sort", memory_bytes=2**28, threads=2),
            disks=1,
            repetition=repetition,
            started_at=start.started_at,
            result=result,
        )
        for repetition in range(2)
    )
    return StreamStudy(start=start, status=Status.DONE, runs=runs, sentences=("Done.",))


def sample_cache_start(study_id: str = "study-a", system: str = "disk") -> CacheStart:
    """Return the start record of a small study of a page cache."""
    return CacheStart(
        study_id=study_id,
        system=system,
        target="/data",
        seed=2**60 + 1,
        started_at="2026-11-20T12:00:00+00:00",
        backend="pread",
        direct=False,
        cache_limit_bytes=None,
        accuracy=0.02,
        plan=CachePlan(
            stages=(PlanStage("ends", 8, "both ends"),),
            budget_s=300.0,
            point_s=5.0,
            layout_bytes=2**30,
            unique_bytes_min=2**25,
            unique_bytes_max=2**30,
            size_mean=2**15,
        ),
        facts={"kernel": "6.18"},
        memory_bytes=2**28,
        sync="dsync",
    )


def sample_cache_study(start: CacheStart, status: Status = Status.DONE) -> CacheStudy:
    """Return the answer of a study in which nothing could be told."""
    none = CacheSize(bytes=None, memory_frac=None, reason="too few points")
    return CacheStudy(
        start=start,
        status=status,
        wall_s=10.0,
        points=1,
        cache=FileCache(
            reads=none,
            writes=none,
            policy=WritePolicy.UNKNOWN,
            evidence=(
                Evidence(
                    name="bytes at the device",
                    says=WritePolicy.UNKNOWN,
                    value=Interval(0.5, None, None, 1),
                    sentence="n.m.",
                ),
            ),
            size_mean=None,
            inside_bytes=None,
            outside_bytes=None,
            read_mb_s=None,
            write_mb_s=None,
            disk_read_mb_s=None,
            disk_write_mb_s=None,
            memory_bytes=2**28,
        ),
        curves=(),
        noise_frac=0.03,
    )


def sample_experiment_start(study_id: str = "experiment-a") -> ExperimentStart:
    """Return the start of an experiment on a simulated server with two configurations."""
    system = {"service_ms": 10.0, "service": {"kind": "exponential"}}
    return ExperimentStart(
        study_id=study_id,
        system="tiny-server",
        server=SimulatedServer(system=system),
        goal=Goal(threshold=Threshold(mean_ms=40.0)),
        policy="curve",
        factors=(Factor(name="workers", role="configuration", levels=(1, 4)),),
        samples=({"workers": 1}, {"workers": 4}),
        seed=2**63,
        started_at="2026-11-22T10:00:00+00:00",
        facts={"cpu_count": 2},
        text="[server]\n",
    )


def sample_trial(order: int = 0, rate_per_s: float = 100.0) -> Trial:
    """Return a trial of ten seconds that went well."""
    response = ResponseMs(mean=12.5, p50=9.0, p90=28.0, p95=37.0, p99=58.0, p99_9=80.0, max=99.5)
    due = round(10 * rate_per_s)
    return Trial(
        order=order,
        request=TrialRequest(rate_per_s=rate_per_s, seconds=10.0),
        seed=2**62 + order,
        state=TrialState.DONE,
        cost_s=25.0,
        measured=Measured(
            seconds=10.0,
            warm_up_s=5.0,
            due=due,
            unanswered=0,
            failed=0,
            completed_per_s=rate_per_s,
            response_ms=response,
            aborted=False,
            batches=(Batch(due=due, mean_ms=12.5, over=0, completed=due),),
        ),
        started_at="2026-11-22T10:00:01+00:00",
    )


def sample_peak(trials: int = 1) -> PeakRate:
    """Return an answer that rests on that many trials."""
    load = Load(
        rate_per_s=100.0,
        trials=trials,
        response_ms=Interval(12.5, None, None, 1),
        percentile_ms=None,
        saturated=False,
    )
    return PeakRate(
        policy="curve",
        verdict=PeakVerdict.FOUND,
        rate_per_s=Interval(110.0, 104.0, 116.0, trials),
        accuracy=0.945,
        confidence=0.95,
        cost_s=25.0 * trials,
        trials=trials,
        loads=(load,),
        limited_by="server",
        run_length_s=180.0,
        sentences=("Found.",),
    )


def keep_study(store: Keeper, study: StudySample, status: Status | None = Status.DONE) -> None:
    """Give a store all of a study; without a status it runs still."""
    store.begin(study.records, study.start)
    for group, item in study.items:
        store.add(study.study_id, item, group)
    if status is not None:
        store.end(study.study_id, study.answer, status)


def stored_stream(study: StreamStudy) -> StudySample:
    """Return what a store is given of a stream study."""
    name = study.start.study_id
    items: list[CapacitiesKnown | RunEnded] = []
    if study.capacities is not None:
        items.append(CapacitiesKnown(order=0, wall_s=0.5, capacities=study.capacities))
    for run in study.runs:
        order = len(items)
        own = f"{name}-{order}"
        items.append(RunEnded(order=order, item_id=own, wall_s=1.0 + order, run=run))
    answer = TextAnswer(sentences=study.sentences, findings=study.findings, wall_s=study.wall_s)
    return StudySample(
        records=STREAM, start=study.start, items=tuple(("", item) for item in items), answer=answer
    )


def stored_files(study: FilesStudy) -> StudySample:
    """Return what a store is given of a study of plain files with one cell."""
    name = study.start.study_id
    size = SizeChosen(
        wall_s=0.5, file_bytes=study.file_bytes or 0, size_steps=(), size_reason=study.size_reason
    )
    cell = CellMeasured(order=1, item_id=f"{name}-1", wall_s=1.5, rows=study.rows)
    answer = TextAnswer(sentences=study.sentences, findings=study.findings, wall_s=study.wall_s)
    return StudySample(
        records=FILES, start=study.start, items=(("", size), ("", cell)), answer=answer
    )


def stored_points(
    records: Records[Any, Any], start: StudyStart, answer: Answer, points: int = 2
) -> StudySample:
    """Return what a store is given of a study whose items are points."""
    found = [sample_point(f"{start.study_id}-{order}", order) for order in range(points)]
    return StudySample(
        records=records, start=start, items=tuple(("", point) for point in found), answer=answer
    )


def stored_experiment(start: ExperimentStart, prior: Prior | None = None) -> StudySample:
    """Return what a store is given of an experiment: one sample found, and one that has begun."""
    trial = TrialEnded(item_id=f"{start.study_id}-0", trial=sample_trial())
    items = (
        ("large", SampleBegun(sample=start.samples[1], prior=prior)),
        ("small", SampleBegun(sample=start.samples[0], prior=None)),
        ("large", trial),
        ("large", PeakKnown(order=2, peak=sample_peak())),
    )
    answer = ExperimentAnswer(
        surface=None, sentences=("Done.",), findings=(), wall_s=2.5, fares=(), fares_on=""
    )
    return StudySample(records=EXPERIMENT, start=start, items=items, answer=answer)


def stored_measurement() -> StudySample:
    """Return what a store is given of measurements: the first, and two runs of the second."""
    access = Access(backend="pread", direct=True, sync="fsync", cache_limit_bytes=2**30)
    asked = WorkloadAsked(name="log", workload=WORKLOAD, access=access, seconds=5.0, runs=5)
    start = MeasurementStart(
        study_id="measurement-a",
        system="disk",
        started_at="2026-11-20T12:00:00+00:00",
        target="/data",
        asked=MeasurementAsked(workloads=(asked, asked), seed=2**63 + 5, accuracy=0.01),
        **access.stored_in(MeasurementStart),
    )
    first = stored_points(MEASUREMENT, start, ElapsedAnswer(wall_s=1.5), points=1)
    runs = [msgspec.structs.replace(sample_point("", order), stage=RUN_STAGE) for order in (0, 1)]
    items = (*first.items, *((runs_group(1), run) for run in runs))
    return msgspec.structs.replace(first, items=items)


def sample_studies() -> tuple[StudySample, ...]:
    """Return a study of every kind; the validation is of the survey."""
    survey, validation = sample_start(), sample_validation_start()
    cache = sample_cache_start()
    return (
        stored_points(SURVEY, survey, sample_survey(survey)),
        stored_points(VALIDATION, validation, sample_validation(validation)),
        stored_points(CACHE, cache, sample_cache_study(cache)),
        stored_files(sample_files_study()),
        stored_stream(sample_stream_study()),
        stored_experiment(sample_experiment_start(), Prior(rate_per_s=80.0, sd_log=0.2)),
        stored_measurement(),
        stored_application(),
    )
