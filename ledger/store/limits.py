"""What no event can exceed, in whatever way it comes: by the rules of a row, by halves that are put together, and by the tables.

Source: specification, section 2.
"""

LARGEST_TOKENS = 10**12
LONGEST_US = 30 * 86_400 * 1_000_000  # of a duration: 30 days
CLOCK_NOISE_US = 10_000  # a queue this far below zero is clock noise; parts may exceed the whole by as much
