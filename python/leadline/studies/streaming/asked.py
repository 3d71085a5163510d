"""Streaming studies as somebody asks for them: runs of a kernel, and disks added one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import msgspec

from leadline.engine import Streams, TargetRefused, open_streams
from leadline.engine.streams.disks import StreamDisks, open_stream_disks
from leadline.record.finding import Finding
from leadline.record.streaming import STREAM, StreamStart, StreamStudy
from leadline.store import Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.resume import find_unfinished
from leadline.studies.streaming.keeping import Before
from leadline.studies.streaming.plan import Planned
from leadline.studies.streaming.run import begin_stream, run_stream, run_stream_on_ranks
from leadline.studies.streaming.stored import kept_before
from leadline.studies.streaming.study import Asked, begin_scaling, run_scaling


class KernelRuns(Study[Streams, StreamStart, Before | None]):
    """Runs of one kernel as somebody asked for them; on ranks, of which this is the first."""

    records = STREAM

    def __init__(
        self,
        planned: Planned,
        *,
        cache_limit_bytes: int | None = None,
        tell_end: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take what is to be run; `tell_end` is told why all ranks are ended."""
        self.planned = planned
        self._cache_limit_bytes, self._tell_end = cache_limit_bytes, tell_end

    def unfinished(self, store: Store) -> StreamStudy:
        """Return the newest unfinished study of these runs.

        Raises:
            TargetRefused: there is none, or it runs with other options.

        """
        planned = self.planned
        found = find_unfinished(
            store,
            STREAM,
            planned.system,
            begin_stream(planned).target,
            meant=lambda begun: begun.purpose == "run",
        )
        study = kept_before(store, found.start.study_id).study
        for run in study.runs:
            asked, kept = (msgspec.structs.asdict(each) for each in (planned.options, run.options))
            asked["data"], kept["data"] = planned.data_bytes, run.result.bytes_in
            differs = [
                f"{name} {kept[name]}, not {asked[name]}"
                for name in asked
                if kept[name] != asked[name]
            ]
            if differs:
                raise TargetRefused(
                    f"the unfinished study {found.start.study_id[:8]} runs with "
                    f"{'; '.join(differs)}: give the same options, or leave out --resume to start "
                    "a new one"
                )
        return study

    def open(
        self, store: Store, earlier: Begun[StreamStart] | None, watcher: Watcher
    ) -> AbstractContextManager[Streams]:
        """Open the engine."""
        return open_streams(cache_limit_bytes=self._cache_limit_bytes)

    def begin(self, opened: Streams, findings: tuple[Finding, ...]) -> StreamStart:
        """Say what decides it."""
        return begin_stream(self.planned)

    def kept(
        self, store: Store, start: StreamStart, earlier: Begun[StreamStart] | None
    ) -> Before | None:
        """Return what is stored; a new study is kept when something is measured."""
        return None if earlier is None else kept_before(store, start.study_id)

    def run(
        self,
        opened: Streams,
        store: Store,
        start: StreamStart,
        kept: Before | None,
        watcher: Watcher,
    ) -> StreamStudy:
        """Run the kernel as often as it is missing."""
        if self.planned.options.ranks == 1:
            return run_stream(
                self.planned,
                start,
                opened,
                store,
                before=kept,
                on_capacities=watcher.ended,
                on_run=watcher.ended,
            )
        study = run_stream_on_ranks(
            self.planned, start, opened, store, tell=self._tell_end, on_capacities=watcher.ended
        )
        if study is None:
            raise RuntimeError("rank 0 has no study")
        return study


class DiskScaling(Study[StreamDisks, StreamStart, Before | None]):
    """Every kernel on 1 to n disks, as somebody asked for it."""

    records = STREAM

    def __init__(self, directories: Sequence[str], asked: Asked) -> None:
        """Take what was asked for; a directory for each disk."""
        self._directories, self._asked = directories, asked

    def unfinished(self, store: Store) -> StreamStudy:
        """Return the newest unfinished study of these disks."""
        found = find_unfinished(
            store,
            STREAM,
            self._asked.system,
            ", ".join(self._directories),
            meant=lambda begun: begun.purpose == "scaling",
        )
        return kept_before(store, found.start.study_id).study

    def open(
        self, store: Store, earlier: Begun[StreamStart] | None, watcher: Watcher
    ) -> AbstractContextManager[StreamDisks]:
        """Claim the directories."""
        return open_stream_disks(self._directories)

    def begin(self, opened: StreamDisks, findings: tuple[Finding, ...]) -> StreamStart:
        """Say what decides it."""
        return begin_scaling(self._directories, self._asked)

    def kept(
        self, store: Store, start: StreamStart, earlier: Begun[StreamStart] | None
    ) -> Before | None:
        """Return what is stored; a new study is kept before its first run."""
        return None if earlier is None else kept_before(store, start.study_id)

    def run(
        self,
        opened: StreamDisks,
        store: Store,
        start: StreamStart,
        kept: Before | None,
        watcher: Watcher,
    ) -> StreamStudy:
        """Make every run that is missing."""
        return run_scaling(opened, store, start, self._asked, before=kept, on_run=watcher.ended)
