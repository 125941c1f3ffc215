"""The C library: its signatures, its handles, and one Python function per call.

`abi` repeats the types of `meshfeed.h`, `library` loads the library, and `handle` and `owner`
release what it allocates. `calls`, `reports` and `rings` have the calls that are not made for every
batch; `meshfeed._feed.cursor` makes the one that is. An error of the library becomes an exception
of `meshfeed.errors`.
"""
