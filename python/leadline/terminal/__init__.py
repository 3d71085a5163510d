"""What the command line shares: options, progress, what is said. Only this package prints.

stdout is data, stderr is talk.
"""
