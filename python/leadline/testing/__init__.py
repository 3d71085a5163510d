"""Help for testing what others add to Leadline; needs pytest."""
