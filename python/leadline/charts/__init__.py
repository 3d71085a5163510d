"""Charts, pages, image files, tables on a terminal: the library that every kind draws with.

Nothing is imported here: Altair and vl-convert take a second to load, and telling a survey on a
terminal needs neither.
"""
