"""Workloads predicted from a stored survey, as they are told and drawn."""
