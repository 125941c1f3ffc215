"""The timed loop of a benchmark, and the tables and plots of its results."""
