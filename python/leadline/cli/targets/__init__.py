"""Commands about what can be measured."""
