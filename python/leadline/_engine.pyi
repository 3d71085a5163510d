"""The native module: a thin shim over the Rust crates."""

from collections.abc import Callable, Sequence
from typing import Literal

from leadline.stats.hierarchy import Codes, CurveReadings, Floats
from leadline.studies.workbench.belief import Servers
from leadline.studies.workbench.reading import Aim, Reading

BUILD: Literal["debug", "release"]
"""How the engine was built; a debug build measures itself."""

LEVELS_MAX: int
"""Most boundaries of a hierarchy (crates/stats)."""

SLOPE_MAX: float
"""Steepest fall of a level by itself, as a power of `unique_bytes` (crates/stats)."""

def serve() -> int:
    """Run the engine child's main loop; 0 at end of file, 1 when nobody reads the events."""

def run_job(job_json: str) -> list[str]:
    """Run one job that measures nothing real here; its event lines.

    Raises:
        ValueError: it measures a real target.

    """

def simulated_truth(
    system_json: str, workload_json: str, from_s: float = 0.0, to_s: float = 0.0
) -> float:
    """Return the expected throughput in MB/s between two virtual times, exact under the model."""

def simulated_boundaries(system_json: str) -> list[tuple[float, str]]:
    """Return the boundaries in `unique_bytes` as (bytes, what ends there)."""

def check_system(system_json: str) -> None:
    """Raise ValueError with the reason when a simulated system makes no sense."""

class Rank:
    """One rank of a streaming job on several ranks; MPI carries what it says.

    What fails raises RuntimeError(kind, message), the kind as on the wire.
    """

    def __init__(self, job_json: str, rank: int, ranks: int) -> None: ...
    @staticmethod
    def network(rank: int, ranks: int, bytes_each: int) -> Rank:
        """Return a rank that only tries the network, with `bytes_each` from every rank."""

    def sample(self) -> bytes:
        """Return some of this rank's input, from which all learn which keys belong to whom."""

    def split(self, samples: list[bytes]) -> None:
        """Take the samples of all ranks."""

    def begin(self) -> None:
        """All ranks begin now."""

    def step(
        self,
    ) -> tuple[bool, list[tuple[int, int, int, int, int]], list[tuple[int, int, int, int]]]:
        """Do a piece of work, and say what to carry.

        Returns:
            Whether anything was done; messages to be sent, as peer, slot, bytes, tag and address;
            memory in which to receive, as peer, slot, bytes and address.

        """

    def sent(self, peer: int, slot: int) -> None:
        """Learn that a message has left its slot."""

    def arrived(self, peer: int, slot: int, length: int, tag: int) -> bool:
        """Learn that a message has come; whether its sender has more."""

    def is_over(self) -> bool:
        """Whether all messages are where they belong, or have been given up."""

    def end_exchange(self) -> None:
        """Bring what came where it belongs; raise why this rank gave up, if it did."""

    def write(self) -> None:
        """Write what is still to be written of this rank's part."""

    def verify(self) -> None:
        """Read this rank's part back."""

    def answer(self) -> str:
        """Return what this rank found, for `merge_ranks`."""

    def link(self) -> tuple[str, list[str]]:
        """Name the files of this rank's part; what `publish` wants to know, and the names."""

    def publish(self, parts: list[str]) -> None:
        """Write the layout of the parts of all ranks: the data set is there."""

    def keep(self) -> None:
        """Leave this rank's files where they are: the layout names them."""

def merge_ranks(job_json: str, answers: list[str]) -> str:
    """Return the result of all ranks, from their answers in order.

    Raises:
        RuntimeError: (kind, message): the output is wrong.

    """

def refine(
    data: CurveReadings, codes: Codes, theta: Floats, iterations: int
) -> tuple[bytearray, bytearray]:
    """Improve fits; their parameters and costs then, as doubles.

    Raises:
        ValueError: arrays that do not belong together, or a shape that nobody knows.

    """

def start_fits(
    data: CurveReadings, centres: Floats, codes: Codes
) -> tuple[list[int], bytearray, bytearray]:
    """Solve for the heights of fits at given boundaries; which are good, their parameters, costs.

    Raises:
        ValueError: as for `refine`.

    """

def ln_time(x: Floats, middle: float, codes: Codes, theta: Floats) -> tuple[bytearray, bytearray]:
    """Return ln time of fits, and its derivatives as (fits, parameters, readings).

    Raises:
        ValueError: as for `refine`.

    """

def miss_ratio(x: Floats, centres: Floats, ln_widths: Floats, codes: Codes) -> bytearray:
    """Return the misses of each level of each fit at each x.

    Raises:
        ValueError: as for `refine`.

    """

def huber(residual: Floats, scale: float) -> bytearray:
    """Return the square of each residual up to `scale`, linear beyond."""

def log_likelihood(reading: Reading, servers: Servers, aim: Aim) -> bytearray:
    """Return the logarithm of a trial's probability density for each server, as doubles.

    Raises:
        ValueError: servers that do not have as many of one number as of another.

    """

def log_peak(servers: Servers, aim: Aim, run_length_s: float, warm_up_s: float) -> bytearray:
    """Return the logarithm of the peak rate of each server.

    Raises:
        ValueError: as for `log_likelihood`.

    """

def student_t_log(residual: Floats, sd: float) -> bytearray:
    """Return the log density of Student's t of each residual, without its constant."""

def capture(
    command: Sequence[str],
    process: int | None,
    group: str | None,
    *,
    way: str | None,
    seconds: float | None,
    keep_paths: bool,
    keep: int | None,
    hear: Callable[[int, int], tuple[int, bool] | None],
) -> tuple[TraceRead, str]:
    """Watch a command, a process or a control group until it ends or `hear` wants an end.

    Args:
        command: its words, where neither of the next two is given.
        process: by its number.
        group: folder of a control group.
        way: `bpf`, `ptrace`, or the best that is allowed.
        seconds: until then at most.
        keep_paths: tell what files are called.
        keep: descriptor that records are written to as well; it is closed.
        hear: told requests and bytes every tenth of a second; returns the signal that wants an end
            and whether the command has it already.

    Raises:
        ValueError: why not, in a sentence.

    """

def run_unwatched(
    command: Sequence[str], hear: Callable[[int, int], tuple[int, bool] | None]
) -> tuple[float, int | None, int | None, int | None]:
    """Run a command without looking; `hear` as for `capture`.

    Returns:
        Seconds, its exit code or the signal that ended it, the signal by which somebody stopped it.

    """

def replay_steps(descriptor: int, to: int, progress: Callable[[int], object]) -> str:
    """Read a trace for a replay, and write its steps to the descriptor `to`.

    Args:
        descriptor: of a file.
        to: of a file, which is written from its beginning.
        progress: told the bytes so far; what it raises ends the reading.

    Returns:
        What the steps are of, as JSON (crates/trace/src/replay.rs).

    Raises:
        ValueError: why it is not taken, in a sentence.

    """

class TraceRead:
    """A trace that has been read; what it answers is JSON (crates/trace/src/trace.rs)."""

    def __init__(self, descriptor: int, progress: Callable[[int], object]) -> None:
        """Read what a descriptor is open for.

        Args:
            descriptor: of a file, or of a pipe.
            progress: told the bytes so far; what it raises ends the reading.

        Raises:
            ValueError: why it is not taken, in a sentence.

        """

    def about(self) -> str:
        """Return what is known of the whole."""

    def features(self) -> str:
        """Return what tells each slice from the next."""

    def part(self, from_slice: int, to_slice: int) -> str:
        """Return the description of some slices."""

    def steps(self) -> tuple[str, bytes] | None:
        """Return what its replay is of, as JSON, and its steps; None of a long one."""

    def misses(self, pages: list[int]) -> str:
        """Return miss ratios of caches of so many pages.

        Raises:
            ValueError: they do not ascend.

        """
