"""What the project adds to Sphinx for its site."""
