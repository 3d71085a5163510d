"""One measurement and the evidence for it."""
