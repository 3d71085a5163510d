"""Experiment files: their keys, quantities and lines."""
