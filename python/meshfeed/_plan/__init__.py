"""Conversions between a user's specs and arrays, and the library's layout documents and blocks."""
