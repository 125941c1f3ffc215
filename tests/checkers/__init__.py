"""What type checkers say about programs that use the package."""
