"""Pure functions on numbers: intervals, borders, curves and drift. Seeded, no I/O."""
