"""Predicted workloads on a terminal."""
