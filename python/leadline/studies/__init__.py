"""What every kind of study has in common; each kind has a room of its own below."""
