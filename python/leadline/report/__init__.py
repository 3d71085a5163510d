"""Explain a stored survey: charts, the page, image files. Reads records only."""
