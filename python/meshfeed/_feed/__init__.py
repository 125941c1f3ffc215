"""The path of a batch from the C library to the caller of a loader."""
