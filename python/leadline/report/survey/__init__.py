"""A self-scaling survey: curves, overviews, the page, the poster."""
