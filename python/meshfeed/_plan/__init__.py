"""Plans in the form of the library: its layout documents, and its descriptions of blocks."""
