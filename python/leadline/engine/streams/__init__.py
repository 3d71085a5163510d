"""Streaming kernels as jobs of an engine child: where the data lies, and the disks under it."""
