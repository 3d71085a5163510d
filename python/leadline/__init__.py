"""Leadline: sound a storage system to the bottom.

The package root stays light: the engine child imports it inside a memory cgroup, where every
imported module would take room from the file cache under test. Names are resolved on first use.
"""
