"""The timed loop of a benchmark, and the texts, tables and plots of its results."""
