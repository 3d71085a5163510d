"""Known truths, what every plug-in must hold, and samples: for tests and benches."""
