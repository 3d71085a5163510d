"""One rank's eye on the others: a rank that dies, or a signal, ends all of them with one message.

Whoever waits for a dead rank waits for ever, and a signal does not interrupt what the kernel is
doing, so a thread waits for both. It may end the process at any moment: what a rank writes has no
name until all ranks have verified theirs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

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
                "the job: somebody killed it, or the kernel for want of memory (see its log). "
                "Nothing was written under the output's name; start the job again"
            )
        name = signal.Signals(os.read(self._wakes, 1)[0]).name
        return (
            f"stopped early by {name}, which a launcher also sends when it has lost a rank. "
            "Nothing was written under the output's name"
        )
