"""Tests of datasets: files, arrays, views and rows."""
