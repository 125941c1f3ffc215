"""A check of meshfeed on the devices at hand: `python -m meshfeed selfcheck`.

The check needs an installed meshfeed, JAX and its devices, and nothing else: no network, no
compiler, no files. It has two parts.

1. `checks`: every device's shard holds the right bytes, in every element type and every kind of
   device memory; replicas agree; host buffers are not reused before their transfer ends; donated
   arrays take nothing with them; all memory is returned.
2. `timing` and `overlap`: how long `next` takes and how fast rows arrive, beside a loop that does
   the same with `np.take` and `jax.device_put`, and how much of a transfer a step hides.

`report` writes the outcome as Markdown or JSON and says it in three sentences.
"""
