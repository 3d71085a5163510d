"""An application's time on a surveyed system: its own misses, times what each level costs."""
