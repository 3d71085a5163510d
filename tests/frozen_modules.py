"""Ends what the forking server loads (forked_command.py): no child looks for garbage in it."""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
