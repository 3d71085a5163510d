"""Models of a surveyed system: throughput of workloads nobody measured (CP94 §9). Pure, no I/O."""
