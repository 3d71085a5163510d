"""The NFS server that the tests start: what it promises them, asked with libnfs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nfs_server import NfsServer, nfs_server

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from nfs_bare import BareClient, ClientFailed, Load, NotAvailable

pytestmark = pytest.mark.real
Serve = Callable[..., NfsServer]
MIB = 2**20


@pytest.fixture
def client(tmp_path: Path) -> BareClient:
    try:
        return BareClient(tmp_path)
    except NotAvailable as reason:
        pytest.skip(f"no independent client here: {reason}")


def dirty_pages(server: NfsServer) -> int:
    found = server.dirty_pages(server.directory / "file")
    if found is None:
        pytest.skip("no cachestat(2) here: needs Linux 6.5")
    return found


@pytest.mark.parametrize(("export", "stays_dirty"), [("exp", True), ("sync", False)])
def test_only_the_synchronous_export_has_written_when_it_answers(
    serve: Serve, client: BareClient, export: str, stays_dirty: bool
) -> None:
    server = serve()
    client.lay(server.url(), "/file", 4 * MIB)
    assert dirty_pages(server) == 0, "laying ends with a COMMIT"
    writes = Load(4 * MIB, 4096, depth=4, read_frac=0)
    client.measure(server.url(export), "/file", writes, warm_s=0, seconds=0.3, seed=1)
    assert (dirty_pages(server) > 0) == stays_dirty


def test_a_file_sync_write_has_been_written_when_it_is_answered(
    serve: Serve, client: BareClient
) -> None:
    server = serve()
    client.lay(server.url(), "/file", 4 * MIB)
    writes = Load(4 * MIB, 4096, depth=4, read_frac=0, synchronous=True)
    client.measure(server.url(), "/file", writes, warm_s=0, seconds=0.3, seed=1)
    assert dirty_pages(server) == 0


def test_the_servers_cache_is_charged_to_its_group(serve: Serve, client: BareClient) -> None:
    server = serve(memory_bytes=64 * MIB)
    client.lay(server.url(), "/file", 96 * MIB)
    assert server.group is not None
    name = "file" if server.group.version == 2 else "cache"
    assert 32 * MIB < server.group.stat()[name] <= 64 * MIB, "96 MiB were written"
    assert 0 < server.resident_bytes() < 32 * MIB


def test_killed_it_answers_nobody_and_restarted_it_has_the_file(
    serve: Serve, client: BareClient
) -> None:
    server = serve()
    client.lay(server.url(), "/file", MIB)
    reads = Load(MIB, 4096, depth=1, read_frac=1)
    server.kill()
    with pytest.raises(ClientFailed):
        client.measure(server.url(), "/file", reads, warm_s=0, seconds=0.2, seed=1)
    server.start()
    answer = client.measure(server.url(), "/file", reads, warm_s=0, seconds=0.2, seed=1)
    assert answer.requests > 0


def test_two_run_side_by_side(serve: Serve, client: BareClient) -> None:
    first, second = serve(), serve()
    assert first.address != second.address
    client.lay(first.url(), "/file", MIB)
    client.remove(second.url(), "/file")
    assert not (first.directory / "file").exists(), "both serve the same directory"


START = """
import sys, time
from pathlib import Path
from nfs_server import nfs_server
with nfs_server(Path(sys.argv[1]), memory_bytes=64 << 20) as server:
    print(server.namespace, server.group.path, server.pid, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_test_left_goes_with_the_next_start(serve: Serve, tmp_path: Path) -> None:
    serve()
    child = subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )
    with child:
        assert child.stdout is not None
        namespace, group, pid = child.stdout.readline().split()
        assert Path("/run/netns", namespace).exists()
        child.send_signal(signal.SIGKILL)
    with nfs_server(tmp_path):
        assert not Path(group).exists()
    assert not Path("/run/netns", namespace).exists()
    assert not Path("/sys/class/net", namespace.replace("leadline-nfs-", "llnfs")).exists()
    words = Path("/proc", pid, "cmdline")  # one that nobody has reaped yet has none
    assert not words.exists() or not words.read_bytes()
