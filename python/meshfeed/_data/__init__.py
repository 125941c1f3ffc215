"""Datasets: opening files and arrays, viewing them, and reading single rows.

`opening` and `joining` make datasets, and `dataset` has the views: slices, selections, windows and
the like. Each returns another `Dataset` at once, without reading. `readable` and `rows` read rows
as NumPy, and `preview` shows some of them in a notebook. Batches are the work of
`meshfeed._loader`.
"""
