"""An application: its five numbers, its miss ratios, its streams."""
