"""Streaming studies (AD98): models of what moves, bounds, disk scaling and balance. Pure."""
