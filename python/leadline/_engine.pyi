"""The native module: a thin shim over crates/engine."""

from typing import Literal

BUILD: Literal["debug", "release"]
"""How the engine was built; a debug build measures itself."""

def serve() -> int:
    """Run the engine child's main loop; 0 at end of file, 1 when nobody reads the events."""

def run_job(job_json: str) -> list[str]:
    """Run one job of a null or simulated target here; its event lines.

    Raises:
        ValueError: the target is a directory.

    """

def simulated_truth(
    system_json: str, workload_json: str, from_s: float = 0.0, to_s: float = 0.0
) -> float:
    """Return the expected throughput in MB/s between two virtual times, exact under the model."""

def simulated_borders(system_json: str) -> list[tuple[float, str]]:
    """Return the borders in `unique_bytes` as (bytes, what ends there)."""

def check_system(system_json: str) -> None:
    """Raise ValueError with the reason when a simulated system makes no sense."""
