"""A kernel on the ranks of a cluster: started, watched, ended together."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from leadline import _engine
from leadline.engine import EngineFault
from leadline.engine.child import answer
from leadline.errors import LeadlineError, UsageRefused
from leadline.record.job import STREAM_MEMORY_BYTES_MIN, StreamJob
from leadline.record.streaming import StreamResult

if TYPE_CHECKING:
    from mpi4py import MPI

# One rank's eye on the others: a rank that dies, or a signal, ends all of them with one message.
#
# Whoever waits for a dead rank waits for ever, and a signal does not interrupt what the kernel is
# doing, so a thread waits for both. It may end the process at any moment: what a rank writes has no
# name until all ranks have verified theirs.

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAID_S = 0.3
"""How long the one that speaks holds the right to, so that nobody speaks again."""


class RankWatch:
    """Watches the processes of the other ranks on this node."""

    def __init__(
        self,
        processes: Mapping[int, int],
        job_id: str,
        tell: Callable[[str], None],
        leave: Callable[[], None],
    ) -> None:
        """Open what can be watched of `processes`, which holds the process of each rank.

        One rank of a node says with `tell` what happened; each ends its process with `leave`.
        """
        self._job_id = job_id
        self._tell = tell
        self._leave = leave
        self._names: tuple[str, ...] = ()
        self._ranks: dict[int, tuple[int, int]] = {}
        for rank, process in processes.items():
            # Another container's processes cannot be seen; its own ranks watch them.
            with contextlib.suppress(OSError):
                self._ranks[os.pidfd_open(process)] = (rank, process)
        self._wakes, self._wake = os.pipe()
        self._over, self._end = os.pipe()
        for descriptor in (self._wake, self._end):
            os.set_blocking(descriptor, False)
        self._thread = threading.Thread(target=self._watch, name="rank watch", daemon=True)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the block has ended."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        waker = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._thread.start()
        try:
            yield
        finally:
            os.write(self._end, b"x")
            self._thread.join()
            signal.set_wakeup_fd(waker)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (*self._ranks, self._wakes, self._wake, self._over, self._end):
                os.close(descriptor)

    def removes(self, names: tuple[str, ...]) -> None:
        """From now on these files are removed when the job is given up."""
        self._names = names

    def _watch(self) -> None:
        poll = select.poll()
        for descriptor in (*self._ranks, self._wakes, self._over):
            poll.register(descriptor, select.POLLIN)
        woke = {descriptor for descriptor, _ in poll.poll()}
        if self._over in woke:
            return
        # A launcher answers a rank's death with SIGTERM to the others: the death is the news.
        dead = [self._ranks[fd] for fd, _ in poll.poll(0) if fd in self._ranks]
        for name in self._names:
            with contextlib.suppress(OSError):
                Path(name).unlink()
        with socket.socket(socket.AF_UNIX) as voice:
            # A name that only one process of this node can have: whoever has it speaks.
            with contextlib.suppress(OSError):
                voice.bind(f"\0leadline-{self._job_id}")
                self._tell(self._message(dead))
                time.sleep(_SAID_S)
            self._leave()

    def _message(self, dead: list[tuple[int, int]]) -> str:
        if dead:
            rank, process = dead[0]
            return (
                f"rank {rank} (process {process} on {socket.gethostname()}) died in the middle of "
                "the job: another process killed it, or the kernel for want of memory (see its "
                "log). Nothing was written under the output's name; start the job again"
            )
        name = signal.Signals(os.read(self._wakes, 1)[0]).name
        return (
            f"stopped early by {name}, which a launcher also sends when it has lost a rank. "
            "Nothing was written under the output's name"
        )


# The cluster platform: one kernel on many ranks, started by mpirun or srun (AD98 §3.2, §4).
#
# MPI carries bytes from and to memory that the engine owns; what goes where is decided by the
# engine (`crates/kernels/src/ranks`). Every step ends with an agreement: when one rank fails, all
# stop, and rank 0 says why.

_T = TypeVar("_T")
Tell = Callable[[str], None]

_NAP_S = 50e-6
"""Between two looks at the network when there is nothing to do: short beside a message, and the
processor is left to ranks that have something to do."""
_ENDED_EARLY = 3


class MpiMissing(LeadlineError):
    """Several ranks were started, but they cannot reach each other."""

    exit_code = 2


def ranks_started(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many ranks the launcher says it has started; 1 without one."""
    # SLURM_NTASKS is there in a batch script, too, where this process would be alone.
    names = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
    if "SLURM_STEP_ID" in environment:
        names.append("SLURM_STEP_NUM_TASKS")
    sizes = [int(environment[name]) for name in names if environment.get(name, "").isdigit()]
    return max(sizes, default=1)


def run_cluster(job: StreamJob, *, tell: Tell) -> StreamResult | None:
    """Run one rank of a job that all ranks are given; all return together.

    `memory_bytes` of the job is for all ranks of a machine together. When a rank dies, `tell` gets
    the message on one of the others, and the processes end.

    Returns:
        The result of all ranks on rank 0; None on the others, also when rank 0 raises.

    """
    return _with_all_ranks(job.job_id, tell, lambda ranks, watch: _run(ranks, watch, job))


def network_capacity(*, bytes_each: int, readings: int, tell: Tell) -> tuple[float, ...] | None:
    """Measure what one rank gets in and out together, in bytes per second, all ranks at once.

    Each reading carries `bytes_each` from every rank to the others, the way a sort does, but from
    memory to memory. Returns the readings on rank 0; None on the others.
    """

    def measure(ranks: _Ranks, _watch: RankWatch) -> tuple[float, ...]:
        return tuple(ranks.network_bytes_s(bytes_each) for _ in range(readings))

    return _with_all_ranks("network", tell, measure)


def _with_all_ranks(job_id: str, tell: Tell, work: Callable[[_Ranks, RankWatch], _T]) -> _T | None:
    ranks = _Ranks(_load_mpi())
    watch = ranks.watch(job_id, tell)
    with watch.watching():
        try:
            answered = work(ranks, watch)
        except _AgreedFailure as failure:
            if ranks.number == 0:
                raise failure.error from None
            return None
    return answered if ranks.number == 0 else None


def _load_mpi() -> Any:
    """Load mpi4py's module, which begins MPI: not before all ranks get that far."""
    try:
        from mpi4py import MPI as mpi  # noqa: N811, PLC0415 - see above
    except (ImportError, RuntimeError) as error:
        raise MpiMissing(
            f"{ranks_started()} ranks were started, but MPI cannot be loaded ({error}): type "
            "pip install 'leadline[cluster]', and install an MPI library (Debian: openmpi-bin)"
        ) from error
    started, size = ranks_started(), mpi.COMM_WORLD.Get_size()
    if size != started:
        raise MpiMissing(
            f"the launcher started {started} ranks, but MPI sees {size}: the launcher belongs to "
            "another MPI library than mpi4py's; under Slurm try srun --mpi=pmix"
        )
    return mpi


class _AgreedFailure(Exception):
    """What all ranks know to have gone wrong."""

    def __init__(self, error: LeadlineError) -> None:
        super().__init__(str(error))
        self.error = error


class _Ranks:
    """All ranks, seen from this one."""

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.comm: MPI.Intracomm = mpi.COMM_WORLD.Dup()
        self.number = self.comm.Get_rank()
        self.count = self.comm.Get_size()
        self._node: MPI.Intracomm = self.comm.Split_type(mpi.COMM_TYPE_SHARED)

    def watch(self, job_id: str, tell: Tell) -> RankWatch:
        """Return the watch over the ranks on this node."""
        processes = dict(self._node.allgather((self.number, os.getpid())))
        del processes[self.number]

        def leave() -> None:
            if "OMPI_COMM_WORLD_SIZE" not in os.environ:
                # Slurm may be set up to go on without a rank.
                self.comm.Abort(_ENDED_EARLY)
            os._exit(_ENDED_EARLY)

        return RankWatch(processes, job_id, tell, leave)

    def share_bytes(self, memory_bytes: int) -> int:
        """Return the memory of a rank where most ranks share a machine."""
        most: int = self.comm.allreduce(self._node.Get_size(), self.mpi.MAX)
        share = memory_bytes // most
        if share < STREAM_MEMORY_BYTES_MIN:
            least = STREAM_MEMORY_BYTES_MIN * most // 2**20
            raise _AgreedFailure(
                UsageRefused(
                    f"{memory_bytes / 2**20:.0f} MiB of memory are too little for {most} ranks on "
                    f"a machine, which share them: give --memory {least}M or start fewer ranks"
                )
            )
        return share

    def together(self, step: Callable[[], _T]) -> _T:
        """Do a step on all ranks; when it fails on one, it fails on all."""
        failure: tuple[str, str] | None = None
        value: Any = None
        try:
            value = step()
        except RuntimeError as error:
            if len(error.args) != 2:
                raise
            failure = error.args[0], error.args[1]
        self.agree(failure)
        return value  # type: ignore[no-any-return]

    def agree(self, failure: tuple[str, str] | None) -> None:
        """Raise on all ranks what the first of them says, if any says something."""
        answers = self.comm.allgather(failure and (*failure, socket.gethostname()))
        for rank, said in enumerate(answers):
            if said is None:
                continue
            kind, message, host = said
            try:
                answer({"event": "error", "kind": kind, "message": message})
            except LeadlineError as error:
                error.args = (f"rank {rank} on {host}: {message}",)
                raise _AgreedFailure(error) from None

    def exchange(self, rank: _engine.Rank) -> None:
        """Carry messages until all ranks have what is theirs, or one has failed."""
        carrier = _Carrier(self.mpi, self.comm, rank)
        while not rank.is_over():
            if not carrier.step():
                time.sleep(_NAP_S)
        self.together(rank.end_exchange)

    def network_bytes_s(self, bytes_each: int) -> float:
        """Carry `bytes_each` from every rank once; in and out of one rank per second."""
        rank = self.together(lambda: _engine.Rank.network(self.number, self.count, bytes_each))
        self.comm.Barrier()
        start = time.perf_counter()
        self.exchange(rank)
        self.comm.Barrier()
        seconds = time.perf_counter() - start
        return 2 * bytes_each / seconds


class _Carrier:
    """Messages outstanding, from slot to slot."""

    def __init__(self, mpi: Any, comm: MPI.Intracomm, rank: _engine.Rank) -> None:
        self._mpi = mpi
        self._comm = comm
        self._rank = rank
        self._sending: list[tuple[int, int, MPI.Request]] = []
        self._receiving: dict[int, deque[tuple[int, MPI.Request]]] = {}

    def step(self) -> bool:
        """Let the rank work, and carry; False when there was nothing to do."""
        worked, sends, receives = self._rank.step()
        byte = self._mpi.BYTE
        for peer, slot, length, tag, address in sends:
            memory = self._mpi.memory.fromaddress(address, length)
            request = self._comm.Isend([memory, length, byte], peer, tag)
            self._sending.append((peer, slot, request))
        for peer, slot, length, address in receives:
            memory = self._mpi.memory.fromaddress(address, length)
            request = self._comm.Irecv([memory, length, byte], peer)
            self._receiving.setdefault(peer, deque()).append((slot, request))
        return self._sent() | self._arrived() | worked

    def _sent(self) -> bool:
        still = []
        for peer, slot, request in self._sending:
            if request.Test():
                self._rank.sent(peer, slot)
            else:
                still.append((peer, slot, request))
        moved = len(still) < len(self._sending)
        self._sending = still
        return moved

    def _arrived(self) -> bool:
        moved = False
        status = self._mpi.Status()
        for peer, queue in self._receiving.items():
            # In the order of sending: a later message is not looked at before its predecessor.
            while queue and queue[0][1].Test(status):
                moved = True
                slot, _ = queue.popleft()
                tag = status.Get_tag()
                more = self._rank.arrived(peer, slot, status.Get_count(self._mpi.BYTE), tag)
                while queue and not more:
                    request = queue.pop()[1]
                    request.Cancel()
                    request.Wait()
        return moved


def _run(ranks: _Ranks, watch: RankWatch, job: StreamJob) -> StreamResult:
    job = ranks.comm.bcast(job)  # a default may depend on the moment, as free memory does
    job = msgspec.structs.replace(job, memory_bytes=ranks.share_bytes(job.memory_bytes))
    text = msgspec.json.encode(job).decode()
    rank = ranks.together(lambda: _engine.Rank(text, ranks.number, ranks.count))
    ranks.comm.Barrier()
    rank.begin()
    samples = ranks.comm.allgather(ranks.together(rank.sample))
    ranks.together(lambda: rank.split(samples))
    ranks.exchange(rank)
    ranks.together(rank.write)
    ranks.together(rank.verify)
    answers = ranks.comm.allgather(rank.answer())
    # Every rank holds all answers against each other, so all come to the same verdict.
    merged = ranks.together(lambda: _engine.merge_ranks(text, answers))
    _publish(ranks, rank, watch)
    try:
        return msgspec.json.decode(merged, type=StreamResult)
    except msgspec.DecodeError as error:
        raise EngineFault(f"the ranks' result cannot be read: {error}") from error


def _publish(ranks: _Ranks, rank: _engine.Rank, watch: RankWatch) -> None:
    """Give the parts their names, and then the whole its own."""
    text, names = ranks.together(rank.link)
    watch.removes(tuple(names))
    parts = ranks.comm.allgather(text)
    ranks.together(lambda: rank.publish(parts) if ranks.number == 0 else None)
    watch.removes(())
    rank.keep()
