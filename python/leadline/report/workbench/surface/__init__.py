"""A response surface: map, lines, planes."""
