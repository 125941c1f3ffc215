"""Batches, from the queue of the C library to the caller's loop.

A warm `next` runs here: `batches` is the iterator, `cursor` fetches a batch of the library in
order, and a feed (`feed`, `arrowfeed`, `meshfeed._jax.feed`) makes arrays or `records` over its
memory. `joined` is the cursor in a job of several processes. `clock` and `sampling` measure the
loop.
"""
