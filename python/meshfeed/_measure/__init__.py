"""The timed loop of a benchmark, and the tables of its results."""
