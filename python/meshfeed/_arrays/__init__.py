"""Global arrays without a loader.

`foreign` places arrays and batches that the caller has in memory, for which `stream` reads ahead.
`stored` reads whole arrays from files.
"""
