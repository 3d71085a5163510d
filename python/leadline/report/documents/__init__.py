"""What `--json` says of each kind of study: the keys that DESIGN.md promises."""
