"""Tests of the documents: their programs run, their claims hold, and their English is plain."""
