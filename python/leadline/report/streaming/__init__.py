"""Streaming kernels: time and use by phase, bounds, scaling."""
