"""Tests of the package as a whole: names, types, borders, wheels, and the stages of the tests."""
