"""What tests of Leadline, and of anything that plugs into it, can use."""
