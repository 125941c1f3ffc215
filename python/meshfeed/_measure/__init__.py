"""Times loops over any loader: `mf.benchmark` and its tables."""
