/*
 * abi.c: prints everything that compiled callers depend on. A test compares it with abi.txt.
 */
#include "check.h"
#include "meshfeed_certificate.h"
#include "meshfeed_devices.h"

#define STRUCT(type) printf("struct %s: %u bytes\n", #type, (unsigned)sizeof(type))
#define FIELD(type, field)                                                                                   \
  printf("  %-14s at %4u, %u bytes\n", #field, (unsigned)offsetof(type, field),                              \
         (unsigned)sizeof(((type*)0)->field))
#define FLAG(flag) printf("%s = %d\n", #flag, (int)(flag))
#define CODE(code)                                                                                           \
  do {                                                                                                       \
    FLAG(code);                                                                                              \
    CHECK(strcmp(mf_code_name(code), #code) == 0);                                                           \
  } while (0)
#define HANDLE(type)                                                                                         \
  do {                                                                                                       \
    STRUCT(type);                                                                                            \
    FIELD(type, id);                                                                                         \
  } while (0)

int main(void) {
  printf("ABI %d.%d\n", MF_ABI_MAJOR, MF_ABI_MINOR);
  HANDLE(mf_dataset);
  HANDLE(mf_layout);
  HANDLE(mf_loader);
  HANDLE(mf_splitter);
  HANDLE(mf_check);
  HANDLE(mf_devices);
  HANDLE(mf_ring);
  HANDLE(mf_device_batch);
  STRUCT(mf_error);
  FIELD(mf_error, struct_size);
  FIELD(mf_error, code);
  FIELD(mf_error, op);
  FIELD(mf_error, message);
  FIELD(mf_error, hint);
  FIELD(mf_error, path);
  STRUCT(mf_bytes);
  FIELD(mf_bytes, data);
  FIELD(mf_bytes, size);
  STRUCT(mf_range);
  FIELD(mf_range, first_epoch);
  FIELD(mf_range, first_position);
  FIELD(mf_range, last_epoch);
  FIELD(mf_range, last_position);
  STRUCT(mf_dtype);
  FIELD(mf_dtype, code);
  FIELD(mf_dtype, bits);
  FIELD(mf_dtype, lanes);
  STRUCT(mf_array);
  FIELD(mf_array, struct_size);
  FIELD(mf_array, ndim);
  FIELD(mf_array, name);
  FIELD(mf_array, data);
  FIELD(mf_array, dtype);
  FIELD(mf_array, reserved);
  FIELD(mf_array, shape);
  FIELD(mf_array, strides);
  FIELD(mf_array, logical);
  STRUCT(mf_batch);
  FIELD(mf_batch, struct_size);
  FIELD(mf_batch, tensors);
  FIELD(mf_batch, data);
  FIELD(mf_batch, bytes);
  FIELD(mf_batch, epoch);
  FIELD(mf_batch, step);
  FIELD(mf_batch, position);
  FIELD(mf_batch, rows);
  FIELD(mf_batch, next_epoch);
  FIELD(mf_batch, next_position);
  FIELD(mf_batch, state);
  FIELD(mf_batch, state_size);
  FIELD(mf_batch, live);
  FIELD(mf_batch, idle);
  FIELD(mf_batch, bad);
  STRUCT(mf_tensor);
  FIELD(mf_tensor, struct_size);
  FIELD(mf_tensor, array);
  FIELD(mf_tensor, name);
  FIELD(mf_tensor, data);
  FIELD(mf_tensor, bytes);
  FIELD(mf_tensor, dtype);
  FIELD(mf_tensor, ndim);
  FIELD(mf_tensor, shape);
  FIELD(mf_tensor, start);
  FIELD(mf_tensor, global_shape);
  FIELD(mf_tensor, holders);
  FIELD(mf_tensor, n_holders);
  STRUCT(mf_stats);
  FIELD(mf_stats, struct_size);
  FIELD(mf_stats, reserved);
  FIELD(mf_stats, epoch);
  FIELD(mf_stats, step);
  FIELD(mf_stats, position);
  FIELD(mf_stats, batches);
  FIELD(mf_stats, rows);
  FIELD(mf_stats, bytes);
  FIELD(mf_stats, wait_ns);
  FIELD(mf_stats, stall_ns);
  FIELD(mf_stats, build_ns);
  FIELD(mf_stats, gather_ns);
  FIELD(mf_stats, storage_ns);
  FIELD(mf_stats, decode_ns);
  FIELD(mf_stats, queued);
  FIELD(mf_stats, live_batches);
  FIELD(mf_stats, idle_batches);
  FIELD(mf_stats, host_bytes);
  FIELD(mf_stats, gathered_bytes);
  FIELD(mf_stats, decoding_ns);
  FIELD(mf_stats, delayed_ns);
  FIELD(mf_stats, map_ns);
  FIELD(mf_stats, bad);
  FIELD(mf_stats, requests);
  FIELD(mf_stats, retries);
  FIELD(mf_stats, planned_bytes);
  FIELD(mf_stats, fetched_bytes);
  STRUCT(mf_map_column);
  FIELD(mf_map_column, data);
  FIELD(mf_map_column, size);
  FIELD(mf_map_column, lengths);
  STRUCT(mf_map_rows);
  FIELD(mf_map_rows, struct_size);
  FIELD(mf_map_rows, n_out);
  FIELD(mf_map_rows, n_rows);
  FIELD(mf_map_rows, records);
  FIELD(mf_map_rows, keys);
  FIELD(mf_map_rows, given);
  FIELD(mf_map_rows, out);
  FIELD(mf_map_rows, taken_ns);
  STRUCT(mf_map);
  FIELD(mf_map, struct_size);
  FIELD(mf_map, reserved);
  FIELD(mf_map, function);
  FIELD(mf_map, user);
  FIELD(mf_map, release);
  STRUCT(mf_picture);
  FIELD(mf_picture, struct_size);
  FIELD(mf_picture, format);
  FIELD(mf_picture, array);
  FIELD(mf_picture, dims);
  FIELD(mf_picture, width);
  STRUCT(mf_python);
  FIELD(mf_python, struct_size);
  FIELD(mf_python, reserved);
  FIELD(mf_python, capsule_context);
  FIELD(mf_python, lock);
  FIELD(mf_python, unlock);
  FIELD(mf_python, drop);
  STRUCT(mf_row_shape);
  FIELD(mf_row_shape, field);
  FIELD(mf_row_shape, shape);
  FIELD(mf_row_shape, ndim);
  FIELD(mf_row_shape, dtype);
  FIELD(mf_row_shape, reserved);
  STRUCT(mf_dataset_options);
  FIELD(mf_dataset_options, struct_size);
  FIELD(mf_dataset_options, flags);
  FIELD(mf_dataset_options, io);
  FIELD(mf_dataset_options, n_shapes);
  FIELD(mf_dataset_options, shapes);
  FIELD(mf_dataset_options, split);
  FIELD(mf_dataset_options, cache);
  FIELD(mf_dataset_options, cache_bytes);
  FIELD(mf_dataset_options, columns);
  FIELD(mf_dataset_options, n_columns);
  FIELD(mf_dataset_options, dtype);
  FIELD(mf_dataset_options, reserved);
  FIELD(mf_dataset_options, skip);
  FIELD(mf_dataset_options, commits);
  FIELD(mf_dataset_options, storage);
  STRUCT(mf_fill);
  FIELD(mf_fill, field);
  FIELD(mf_fill, value);
  FIELD(mf_fill, dtype);
  FIELD(mf_fill, reserved);
  STRUCT(mf_loader_options);
  FIELD(mf_loader_options, struct_size);
  FIELD(mf_loader_options, flags);
  FIELD(mf_loader_options, process);
  FIELD(mf_loader_options, processes);
  FIELD(mf_loader_options, order);
  FIELD(mf_loader_options, seed);
  FIELD(mf_loader_options, epochs);
  FIELD(mf_loader_options, prefetch);
  FIELD(mf_loader_options, state);
  FIELD(mf_loader_options, fill);
  FIELD(mf_loader_options, n_fill);
  FIELD(mf_loader_options, max_host_bytes);
  FIELD(mf_loader_options, workers);
  STRUCT(mf_devices_options);
  FIELD(mf_devices_options, struct_size);
  FIELD(mf_devices_options, flags);
  FIELD(mf_devices_options, prober);
  FIELD(mf_devices_options, timeout_ms);
  CODE(MF_OK);
  CODE(MF_TIMEOUT);
  CODE(MF_END);
  CODE(MF_INVALID_ARGUMENT);
  CODE(MF_OUT_OF_RANGE);
  CODE(MF_NOT_FOUND);
  CODE(MF_INVALID_STATE);
  CODE(MF_INCOMPATIBLE);
  CODE(MF_DATA_LOSS);
  CODE(MF_IO);
  CODE(MF_RESOURCE_EXHAUSTED);
  CODE(MF_UNSUPPORTED);
  CODE(MF_CANCELLED);
  CODE(MF_FORKED);
  CODE(MF_INTERNAL);
  FLAG(MF_IGNORE_DATASET);
  FLAG(MF_ALLOW_DUPLICATES);
  FLAG(MF_IMAGES);
  FLAG(MF_ALL_DEVICES);
  FLAG(MF_NO_PREFLIGHT);
  FLAG(MF_TEXT);
  FLAG(MF_SVG);
  FLAG(MF_JSON);
  FLAG(MF_DOCUMENT);
  FLAG(MF_IO_AUTO);
  FLAG(MF_IO_MAP);
  FLAG(MF_IO_READ);
  FLAG(MF_INT);
  FLAG(MF_UINT);
  FLAG(MF_FLOAT);
  FLAG(MF_BFLOAT);
  FLAG(MF_COMPLEX);
  FLAG(MF_BOOL);
  return 0;
}
