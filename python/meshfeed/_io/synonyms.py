"""Names of other libraries, and what to write here instead.

Programs for PyTorch, TensorFlow, Grain and Hugging Face datasets use names that meshfeed does not
have. An error for such a name gives the advice of this table. It says "ds" for the dataset and
"loader" for the loader. `docs/guides/coming_from.py` explains the differences.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from meshfeed._io.arguments import nearest_hint

_STEP = 'do it in the training step, with extras=("key",) for randomness, or before, in the files'
_EPOCHS = "mf.Loader(ds, batch_size=…, epochs=2) repeats it"
_SHUFFLE = "mf.Loader(ds, batch_size=…, shuffle=True, seed=0) shuffles all records in every epoch"
_ROWS = "leave it out: the rows of a process follow from mesh= and specs="
_WORKERS = "leave it out: threads of the library gather rows, and there are no worker processes"
_DEVICES = "leave it out: batches arrive on the devices of mesh="
_MIX = "mf.mix({'a': ds, 'b': more}, {'a': 0.7, 'b': 0.3}) draws with weights"
_PAD = "ds.pad(field, length=…) makes rows of one length, and ds.pack(field, length=…) fills them"
_ARROW = "pa.table(ds) is a table of pyarrow, with to_pandas(), to_pylist() and the like"
_SAVE = "pyarrow.parquet.write_table(pa.table(ds), path) writes the records"
_OPEN = "mf.open opens files, mf.from_arrow tables, and mf.from_arrays arrays"
_UNIQUE = "np.unique(ds.select([field])[:][field]) has the values of a field"
_SEARCH = "meshfeed has no index to search"
_SIZES = "loader.layout has mesh and sizes, and loader.stats() what was loaded"


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Returns the advice of every name, from the names of every piece of advice."""
    return {name: advice for advice, listed in names.items() for name in listed.split()}


# Attributes of a dataset.
DATASET = _by_name(
    {
        "ds.map(fn) computes fields of several rows at a time, with_keys=True for random choices": (
            "map_with_index random_map map_batches with_transform set_transform transform apply"
        ),
        _STEP: "flat_map pipe decode scan cast cast_column align_labels_with_mapping "
        "class_encode_column flatten",
        _SHUFFLE: "shuffle seed set_epoch epoch",
        _EPOCHS: "repeat",
        "mf.Loader(ds, batch_size=64) makes batches": "batch iter rebatch unbatch batched "
        "to_iter_dataset to_iterable_dataset as_numpy_iterator iterator to_tf_dataset",
        "mf.Loader(ds, batch_size=…, prefetch=2) reads batches ahead": "prefetch mp_prefetch",
        "leave it out: the rows of a process follow from the mesh and the specs of its loader": (
            "shard num_shards n_shards reshard"
        ),
        "ds.slice(n) leaves out the first n records": "skip",
        "ds.slice(len(ds) - n) has the last n records": "tail",
        "ds.take(np.argsort(ds.select([field])[:][field])) sorts by a field": "sort sort_values",
        "ds.take(indices) has records by number, and ds.slice(start, stop) a range": "iloc loc "
        "sample subset",
        "ds.select(names) has some of the fields": "select_columns remove_columns drop "
        "drop_columns",
        "ds.rename({old: new}) renames fields": "rename_column rename_columns",
        "ds.schema has the fields, with types and shapes": "column_names columns features "
        "element_spec dtypes dtype num_columns info supervised_keys",
        "len(ds) is the number of records": "num_rows shape cardinality num_records count size",
        "ds[a:b] has rows as NumPy arrays, and a loader makes batches of them": "set_format "
        "with_format reset_format format formatted_as get_single_element to_numpy values",
        "mf.concat([ds, more]) joins datasets": "concatenate add_item append extend",
        "mf.from_arrays and mf.from_arrow make a dataset; give all columns there": "add_column "
        "zip enumerate with_columns assign",
        _MIX: "mix interleave sample_from_datasets choose_from_datasets rejection_resample",
        _PAD: "padded_batch ragged_batch bucket_by_sequence_length group_by_window sparse_batch",
        _OPEN: "from_generator from_tensor_slices from_tensors from_buffer from_csv from_dict "
        "from_file from_json from_list from_pandas from_parquet from_polars from_spark from_sql "
        "from_text list_files load load_from_disk range source random counter",
        _ARROW: "to_dict to_list to_pandas to_polars to_arrow to_table collect",
        _SAVE: "save save_to_disk to_csv to_json to_parquet to_sql push_to_hub snapshot",
        "ds.cache() keeps computed rows, and mf.open(path, cache=…) decoded ones": "cache_files "
        "cleanup_cache_files persist",
        _UNIQUE: "unique value_counts",
        'ds.split({"train": 0.9, "test": 0.1}, seed=0) makes a view of each part': (
            "train_test_split random_split"
        ),
        "ds.filter(mask) keeps some records": "take_while query where dropna ignore_errors",
        "loop over a loader, and reduce there": "reduce",
        "the loader has the state of the job: loader.state()": "state_dict load_state_dict "
        "get_state set_state",
        _SEARCH: "add_elasticsearch_index add_faiss_index add_faiss_index_from_external_arrays "
        "drop_index get_index get_nearest_examples get_nearest_examples_batch "
        "is_index_initialized list_indexes load_elasticsearch_index load_faiss_index "
        "save_faiss_index search search_batch",
        "a view copies no rows, so nothing is to flatten": "flatten_indices",
        "a dataset has records and fields only; its origin says more": "builder_name citation "
        "config_name data dataset_size description download_checksums download_size homepage "
        "license size_in_bytes version parents options with_options",
    }
)

# Attributes of a loader.
LOADER = _by_name(
    {
        "leave it out: every epoch has an order of its own; loader.seek(epoch=1) goes to one": (
            "set_epoch reset"
        ),
        "loader.state() returns the state": "get_state save",
        "loader.restore(state) continues from a state": "set_state load",
        "ds.map(fn) and ds.filter(fn) are views, which a loader takes": (
            "map filter apply transform"
        ),
        "give prefetch= and device_prefetch= when the loader is made": "start_prefetch "
        "prefetch prefetch_to_device",
        "give shuffle=, seed= and epochs= when the loader is made": "shuffle repeat seed",
        "itertools.islice(loader, n) has n batches, and loader.skip() leaves some out": "take",
        "len(loader) is the number of batches": "num_batches cardinality",
        "batches arrive on the devices of the mesh": "to to_device device cuda shard",
        "without mesh= and specs=, batches are NumPy arrays": "as_numpy_iterator numpy",
        _SIZES: "dataset batch_size global_batch_size sampler batch_sampler num_workers drop_last "
        "collate_fn pin_memory prefetch_factor persistent_workers generator timeout "
        "worker_init_fn multiprocessing_context in_order pin_memory_device mesh specs",
    }
)

# Keyword arguments of `mf.Loader`.
OPTIONS = _by_name(
    {
        _WORKERS: "num_workers worker_count workers num_threads num_proc num_parallel_calls "
        "persistent_workers worker_init_fn multiprocessing_context mp_context in_order timeout "
        "read_options threads",
        "write prefetch=, in batches": "prefetch_factor worker_buffer_size prefetch_size "
        "prefetch_buffer_size num_prefetch",
        "write device_prefetch=, in batches": "prefetch_to_device",
        'write remainder="drop", the default, or remainder="pad", which adds a mask': "drop_last "
        "drop_remainder even_batches partial_batch",
        "leave it out: mf.Array makes arrays of fields; ds.pad makes rows of one length": (
            "collate_fn collate collator batch_fn"
        ),
        _PAD: "padding padding_value max_length pad_value pad_to pad_to_multiple_of padded_shapes "
        "padding_values seq_len sequence_length",
        f"{_DEVICES}, as mf.make_mesh makes one": "pin_memory pin_memory_device device devices "
        "to_device non_blocking",
        _ROWS: "shard_options num_shards shard_index shard rank world_size num_replicas "
        "process_index process_count num_processes split_batches dispatch_batches",
        "shuffle= and order= set the order, and ds.take(indices) a fixed one": "sampler "
        "batch_sampler index_sampler",
        "write seed=": "generator rng rngs key random_seed shuffle_seed random_state",
        "write epochs=, or epochs=-1 for no end": "num_epochs n_epochs repeat repeats max_epochs "
        "count",
        "write shuffle=True, which shuffles all records in every epoch": "buffer_size "
        "shuffle_buffer_size shuffle_buffer reshuffle_each_iteration shuffle_files reshuffle",
        "write batch_size=, the rows of the global batch over all processes": "batch bs batchsize "
        "global_batch_size per_device_batch_size per_device_train_batch_size local_batch_size "
        "host_batch_size micro_batch_size train_batch_size",
        "write batch_size=(4, 64), for four micro-batches of 64": "gradient_accumulation_steps "
        "grad_accum_steps accumulation_steps num_microbatches",
        "ds.map(fn) is a view with computed fields, which a loader takes": "transform transforms "
        "operations map_fn preprocess preprocess_fn",
        f"{_STEP}": "augment dtype",
        "write specs=": "spec sharding shardings partition_spec pspec pspecs axis_resources "
        "in_shardings data_sharding sharding_spec batch_sharding",
        "write specs=, with a list of names or a spec for each name": "columns fields features "
        "column_names",
        "give the dataset first, without a name: mf.Loader(ds, batch_size=…)": "source data_source "
        "ds data",
        "write state=, a state or the path that loader.save_state() wrote": "resume restore "
        "checkpoint state_dict resume_from initial_state start_step",
        "itertools.islice(loader, n) has n batches, and ds.slice(0, n) n records": "steps "
        "max_steps num_steps limit num_batches steps_per_epoch",
        "leave it out: the order depends only on order=, seed= and the number of records": (
            "deterministic"
        ),
        _MIX: "weights probabilities stopping_strategy",
        "mf.open(path, cache=…) says where decoded rows are kept": "cache cache_dir",
        "mf.open(path, split=…) opens a split, and ds.split makes some": "split",
        "leave it out: mf.open reads files where they are": "streaming",
        "loader.report() says what bounds the loop": "enable_profiling profile",
    }
)

# Arguments of the methods of a dataset.
METHODS = _by_name(
    {
        _WORKERS: "num_proc num_parallel_calls num_workers num_threads workers",
        "give the function first, without a name": ("function predicate transform fn map_fn"),
        "leave it out: the function gets rows only; ds.filter(mask) keeps records by number": (
            "with_indices with_rank"
        ),
        "leave it out: the function gets batches of rows": "batched batch_size",
        "leave it out: a view keeps no files, and copies no records": "keep_in_memory "
        "load_from_cache_file cache_file_name indices_cache_file_name writer_batch_size "
        "suffix_template new_fingerprint desc",
        'write out=, such as {"x": mf.Field((3,), "float32")}': "features",
        "leave it out: ds.select(names) has some of the fields": "remove_columns",
        "leave it out: the function gets all rows": "drop_last_batch",
        "leave it out: the rows of a map have the types of out=, and no nulls": "disable_nullable "
        "try_original_type on_mixed_types",
        "write functools.partial(function, …), which has them": "fn_kwargs args kwargs",
        "write fields=": "input_columns columns column_names names",
        "ds.take(indices) has records by number": "indices",
        "ds.slice(0, n) has the first n records, and ds.slice(start, stop) a range": "n sl count "
        "offset length",
        "write length=": "size window_size max_length pad_to pad_to_multiple_of",
        "write stride=": "shift step",
        "leave it out: windows are whole": "drop_remainder",
        "write value=": "padding_value padding_values pad_value fill_value constant_values",
        "write side=": "padding_side",
        'write too_long="truncate"': "truncation truncate",
        "write shape=": "new_shape",
        'give the shares by name: ds.split({"train": 0.9, "test": 0.1})': "test_size train_size "
        "lengths fractions splits",
        "leave it out: the parts are drawn at random, by seed=": "shuffle",
        "write seed=": "generator rng key random_seed random_state",
        "write within=": "groups group by group_by",
        "give a dict of present and new names: ds.rename({old: new})": "mapper mapping "
        "column_mapping original_column_name new_column_name",
    }
)

# Attributes of the package.
PACKAGE = _by_name(
    {
        "mf.Loader(ds, mesh, specs, batch_size=…) is the loader": "DataLoader StatefulDataLoader "
        "MapDataset IterDataset Pipeline from_source IterableDataset",
        _OPEN: "load_dataset load_from_disk read_parquet read_table read_csv read_arrow from_files "
        "from_generator from_tensor_slices from_pandas from_polars from_dict from_list load "
        "from_parquet TensorDataset MemorySource ArrayRecordDataSource",
        "mf.concat joins datasets": "concatenate_datasets concatenate ConcatDataset",
        _MIX: "interleave_datasets sample_from_datasets",
        "ds.take(indices) and ds.slice(start, stop) are views": "Subset",
        'ds.split({"train": 0.9, "test": 0.1}, seed=0) makes a view of each part': (
            "random_split train_test_split"
        ),
        _ROWS: "DistributedSampler ShardOptions ShardByJaxProcess IndexSampler AutoShardPolicy",
        "write mf.P, or jax.sharding.PartitionSpec": "PartitionSpec",
        "mf.make_mesh makes a mesh": "Mesh create_device_mesh",
        "mf.put places arrays of any library": "device_put shard_batch global_array "
        "make_array_from_process_local_data host_local_array_to_global_array",
        "mf.place_batches places the batches of another loader": "device_iterator "
        "prefetch_to_device MpDeviceLoader",
        "np.save and mf.from_arrays, or meshfeed convert, write data that mf.open reads": (
            "save write write_parquet ArrowWriter"
        ),
    }
)


def missing(owner: object, name: str, advice: Mapping[str, str]) -> NoReturn:
    """Raises the error for an attribute that an object does not have.

    A method `__getattr__` calls it. Python also calls that method if a property raises an
    AttributeError; then this function raises the error of the property.

    Args:
        owner: the object.
        name: the attribute.
        advice: a table of this module.

    Raises:
        AttributeError: always. It has the advice if the table knows the name.
    """
    kind = type(owner)
    if hasattr(kind, name):
        object.__getattribute__(owner, name)
    if name in advice:
        raise AttributeError(f"a {kind.__name__} has no {name!r}; {advice[name]}")
    message = f"{kind.__name__!r} object has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=owner)  # Python adds the most similar name


def keywords(call: str, advice: Mapping[str, str]) -> Callable[[Any], Any]:
    """Returns a decorator for functions: an unknown keyword argument is an error with advice.

    Args:
        call: the call as the user writes it.
        advice: a table of this module.
    """

    def decorate(function: Any) -> Any:
        code, similar = function.__code__, nearest_hint
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = [n for n in names[code.co_posonlyargcount :] if n != "self"]

        def checked(*args: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    hint = advice.get(name) or (similar(name, known) if known else "it has none")
                    raise TypeError(f"{call}: unexpected keyword argument {name!r}; {hint}")
            return function(*args, **options)

        # Package doctest finds the functions of a module by their globals.
        placed = types.FunctionType(
            checked.__code__, function.__globals__, closure=checked.__closure__
        )
        return functools.update_wrapper(placed, function)

    return decorate


def methods(kind: type, call: str) -> None:
    """Makes an unknown keyword argument of the methods of a dataset an error with advice.

    Args:
        kind: the class.
        call: an object of the class as the user writes it.
    """
    for name in dir(kind):
        method = getattr(kind, name)
        if isinstance(method, types.FunctionType) and not name.startswith("_"):
            setattr(kind, name, keywords(f"{call}.{name}", METHODS)(method))
