"""`leadline`, steered: `steered_command.py POINT_S ROWS DESCRIPTOR ARGUMENTS…`.

POINT_S   Seconds that a point of a survey or study may take, whatever its budget; 0 for its own.
          A real survey then ends soon, and a busy host does not spend its budget.
ROWS      Once it has stored so many points or trials it writes a byte to the descriptor and stands
          still, so that no test hopes to be faster than what it kills; 0 for never.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from leadline.app import main
from leadline.engine import Limits
from leadline.engine.pace import share_limits
from leadline.record.study import Item
from leadline.store._sql import SqlStore
from leadline.studies import pace


def shorten(point_s: float) -> None:
    """Give every point at most this."""

    def shortened(share_s: float, **more: Any) -> Limits:
        return share_limits(min(share_s, point_s), **more)

    vars(pace)["share_limits"] = shortened


def stall_after(rows: int, descriptor: int) -> None:
    """Make every store of this process stand still after so many rows."""
    stored, add = 0, SqlStore.add

    def add_and_stall(self: SqlStore, study_id: str, item: Item, group: str = "") -> None:
        nonlocal stored
        add(self, study_id, item, group)
        stored += item.item_id is not None
        if stored == rows:
            os.write(descriptor, b".")
            time.sleep(3600)

    vars_of_store: Any = SqlStore
    vars_of_store.add = add_and_stall


def kill_after(items: int) -> None:
    """Kill this process as soon as it has stored so many items, whatever they are."""
    stored, add = 0, SqlStore.add

    def add_and_die(self: SqlStore, study_id: str, item: Item, group: str = "") -> None:
        nonlocal stored
        add(self, study_id, item, group)
        stored += 1
        if stored == items:
            os.kill(os.getpid(), signal.SIGKILL)

    vars_of_store: Any = SqlStore
    vars_of_store.add = add_and_die


if __name__ == "__main__":
    if float(sys.argv[1]):
        shorten(float(sys.argv[1]))
    if int(sys.argv[2]):
        stall_after(int(sys.argv[2]), int(sys.argv[3]))
    sys.argv[1:] = sys.argv[4:]
    main()
