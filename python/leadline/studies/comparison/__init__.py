"""Systems against each other: ratios with verdicts, common curves, prices, a gate (METHODS §4)."""
