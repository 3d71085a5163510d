"""Trials side by side, on this machine or a cluster."""
