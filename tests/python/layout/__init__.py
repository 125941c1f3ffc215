"""Tests of layouts, meshes, specs, and their documents and pages."""
