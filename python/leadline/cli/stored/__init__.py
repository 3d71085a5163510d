"""Commands about what is stored."""
