"""How far predictions lie from what was measured."""
