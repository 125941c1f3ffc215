"""Compares packing, long files of tokens and mixtures with Grain, Hugging Face and nanoGPT.

    python -m tests.bench.tokens              every case and loop, about 20 minutes
    python -m tests.bench.tokens --quick      small cases, a minute, printed, nothing kept
    python -m tests.bench.tokens --only chat  cases with this in their name

The results stay in build/bench, and their section of docs/benchmarks.md is written. A run of one
loop is a fresh process, and the loops take turns. All of them end with global `jax.Array`s ready on
eight CPU devices. TRL's loop needs its packages, without PyTorch:

    pip install --no-deps trl==1.16.0 transformers==5.24.0 tokenizers==0.23.3 regex typer
"""
