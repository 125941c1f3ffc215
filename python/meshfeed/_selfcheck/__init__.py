"""A check of meshfeed on the devices at hand: `python -m meshfeed selfcheck`.

The check needs an installed meshfeed, JAX and its devices. It needs no network, no compiler and no
files. It has two parts.

1. `checks`: the shard of every device has the right bytes, in every element type and every kind of
   device memory; replicas are equal; host buffers are not reused before their transfer ends;
   donated arrays do not affect other arrays; all memory is released.
2. `timing` and `overlap`: the time of `next` and the rows per second, compared with a loop of
   `np.take` and `jax.device_put`, and how much of a transfer a step hides.

`bench` is not part of the check: it measures the batches of a layout, for `meshfeed bench --jax`.

`report` writes the outcome as Markdown or JSON, with a summary of three sentences.
"""
