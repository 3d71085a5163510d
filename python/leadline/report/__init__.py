"""Explains stored studies: charts, pages, image files, the terminal. Reads records only.

Nothing is imported here: Altair and vl-convert take a second to load, and telling a survey on a
terminal needs neither.
"""
