"""The page cache of a system: how large for reads and for writes, and what it does with writes.

in_survey  what a survey says of it: pure
find       measurements to findings: pure
sizes      boundaries of reads alone and of writes alone
policy     write-back or write-through, with the evidence
questions  which point a study measures next
study      ask, measure, store, tell
"""
