"""Targets and engines: the only package that starts processes or touches a target."""

from leadline.engine.client import Engine, fitting, open_engine
from leadline.engine.file_tests import FileTests, open_file_tests
from leadline.engine.fit import require_fit
from leadline.engine.pace import (
    BUDGET_SHARE,
    LAYOUT_BYTES_PER_S,
    MEASURE_SHARE,
    POINT_S_MIN,
    PRECONDITION_BYTES_PER_S_MIN,
    BudgetSpent,
    Progress,
    bounded,
    longer_windows,
    share_limits,
    until_completed,
)
from leadline.engine.streams.run import Streams, open_streams
from leadline.engine.targets.preflight import preflight, room_findings
from leadline.engine.targets.profiles import (
    load_profile,
    machine_names,
    profile_names,
    profile_titles,
)
from leadline.engine.targets.target import Directory, NfsExport, Null, Simulated, Target
from leadline.engine.wear import Wear, WrittenSpent, bytes_written
from leadline.errors import (
    CacheLimitRefused,
    EngineFault,
    NothingCompleted,
    PointFailed,
    ServerLost,
    TargetRefused,
)
from leadline.machine.cgroup import memory_cgroup
from leadline.machine.facts import granule_bytes, host_facts, target_facts
from leadline.machine.file_systems import usual_blocks, why_not_made
from leadline.machine.mounts import is_in_memory
from leadline.machine.resources import available_memory_bytes
from leadline.machine.stop import Stopped, stop_on_signals
from leadline.record.job import Limits

__all__ = [
    "BUDGET_SHARE",
    "LAYOUT_BYTES_PER_S",
    "MEASURE_SHARE",
    "POINT_S_MIN",
    "PRECONDITION_BYTES_PER_S_MIN",
    "BudgetSpent",
    "CacheLimitRefused",
    "Directory",
    "Engine",
    "EngineFault",
    "FileTests",
    "Limits",
    "NfsExport",
    "NothingCompleted",
    "Null",
    "PointFailed",
    "Progress",
    "ServerLost",
    "Simulated",
    "Stopped",
    "Streams",
    "Target",
    "TargetRefused",
    "Wear",
    "WrittenSpent",
    "available_memory_bytes",
    "bounded",
    "bytes_written",
    "fitting",
    "granule_bytes",
    "host_facts",
    "is_in_memory",
    "load_profile",
    "longer_windows",
    "machine_names",
    "memory_cgroup",
    "open_engine",
    "open_file_tests",
    "open_streams",
    "preflight",
    "profile_names",
    "profile_titles",
    "require_fit",
    "room_findings",
    "share_limits",
    "stop_on_signals",
    "target_facts",
    "until_completed",
    "usual_blocks",
    "why_not_made",
]
