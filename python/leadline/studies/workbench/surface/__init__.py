"""Response surfaces (SH08 §4): which samples to measure, and what the others would give."""
