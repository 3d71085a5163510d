"""Leadline run for long, and many times in a row, and looked at meanwhile; `bench/soak.py` runs it.

A course does the same again and again, or one long thing, in a process of its own. What it holds is
looked at after each round, or every few seconds: memory, handles, threads, processes, temporary
files, files in the target, the store. `trend` says whether any of it grows.
"""
