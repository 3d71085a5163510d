"""Harm done to Leadline on purpose, a file for each family of it; `bench/faults.py` runs them all.

An attempt does one thing to a real command and then asks three questions: is everything there that
was stored before (else it is lost), is anything there that should not be (left), and was it said
as promised: exit code, status in the store, a message that is no traceback (wrong).
"""
