"""Layouts: which rows and which part of each array every device gets.

A tree of specs (`specs`, `trees`) becomes a layout document (`documents`), which the C library
reads; `layout` has the public `Layout`. The library answers with the blocks of every array
(`blocks`). `localrows` is for arrays if every process has its own rows. Nothing here opens a
dataset.
"""
