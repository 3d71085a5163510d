"""Direct file tests: rates by size."""
