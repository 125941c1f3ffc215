"""Takes batches from the C library and passes them to the caller of a loader."""
