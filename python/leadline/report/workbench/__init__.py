"""Searches for a peak rate, and what they cost."""
