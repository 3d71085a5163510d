"""Facts of this machine and its kernel: memory, mounts, devices, limits, and the lock on it."""
