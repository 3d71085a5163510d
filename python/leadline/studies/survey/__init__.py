"""The self-scaling survey (CP94 §6-8): which points to measure, and what they say."""
