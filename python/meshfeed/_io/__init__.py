"""What comes from the caller and what is written for the caller: arguments, files, a page."""
