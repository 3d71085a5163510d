"""Commands about applications: what they ask of storage."""
