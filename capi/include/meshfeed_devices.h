/*
 * meshfeed_devices.h: batches on the devices of GoMLX's backends: pure Go, or a
 * PJRT plugin for CPUs, GPUs and TPUs. A program that hands host memory to a
 * framework of its own needs meshfeed.h alone.
 */
#ifndef MESHFEED_DEVICES_H
#define MESHFEED_DEVICES_H

#include "meshfeed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Handles, as those of meshfeed.h. */
typedef struct mf_devices {
  uint64_t id;
} mf_devices;

typedef struct mf_ring {
  uint64_t id;
} mf_ring;

typedef struct mf_placed {
  uint64_t id;
} mf_placed;

/* Opens the devices that a specification names:
     go                             one device, in pure Go
     virtual:N                      N of them, to try layouts anywhere
     xla:/abs/plugin.so?devices=N   a PJRT plugin (CPU, CUDA, TPU), in a library built for it
   Returns before a file was touched; see mf_wait. A plugin is tried in a child
   process first, so that a bad one is an error and not a crash. Options are a
   JSON object or NULL:
     "prober": "/path/meshfeed"     the program that tries it, built for XLA too; left out:
                                    `meshfeed` on PATH
     "timeout_ms": 20000            for that
     "preflight": false             do without it, at the risk of this process
   mf_release closes them. Batches on them stay valid until they are released,
   and the memory of a shard that is lent until it is given back. */
mf_status mf_devices_open(const char* spec, size_t spec_size, const char* options, size_t size,
                          mf_devices* devices, mf_error* error);

/* What was opened, and what of meshfeed's is on it:
     {"name": "virtual", "platform": "go", "api": "", "shared": true, "devices": ["..."],
      "dtypes": ["bool", "int8"], "live_buffers": 0, "live_bytes": 0}
   name is "go", "virtual", "xla-cpu", "xla-cuda" or "xla-tpu"; shared says that
   the devices' memory is the host's; there is a text for every device. */
mf_status mf_devices_info(mf_devices devices, mf_bytes* json, mf_error* error);

/* Makes a ring: memory on devices for the batches of a layout, which goes round.
   The ids of the layout's devices are their numbers here. MF_UNSUPPORTED for what
   the backends cannot express: meshes of several processes or without axes. */
mf_status mf_ring_create(mf_devices devices, mf_layout layout, mf_ring* ring, mf_error* error);

/* Where the shards of a batch are, for every array in the order and by the
   number of mf_tensor.array, and every position of the mesh:
     {"arrays": [{"name": "image", "kind": "data", "dtype": "float32", "shape": [256, 8, 8],
                  "spec": ["data"], "shard_shape": [64, 8, 8],
                  "shards": [{"position": 0, "device": 0, "index": [[0, 64], [0, 8], [0, 8]]}]}]} */
mf_status mf_ring_info(mf_ring ring, mf_bytes* json, mf_error* error);

/* Copies the blocks of a batch to every device that holds them, and returns when
   they are there. The batch is only read, and may be released afterwards. It
   must be one of the ring's layout. */
mf_status mf_batch_place(const mf_batch* batch, mf_ring ring, mf_placed* placed, mf_error* error);

/* Copies the shard at a position of the mesh back. size is that of the shard, in
   bytes; it lies in C order. */
mf_status mf_placed_read(mf_placed placed, int32_t array, int64_t position, void* data, int64_t size,
                         mf_error* error);

/* The memory of a shard for DLPack 1.0 consumers, flagged read-only, and for
   older ones; MF_UNSUPPORTED where it is not shared with the host. It serves no
   other batch before the deleter was called, whatever is released meanwhile. The
   deleter may be called on any thread, and in a forked child. Aligned for its
   elements; not more. */
mf_status mf_placed_dlpack(mf_placed placed, int32_t array, int64_t position,
                           struct DLManagedTensorVersioned** tensor, mf_error* error);
mf_status mf_placed_dlpack_legacy(mf_placed placed, int32_t array, int64_t position,
                                  struct DLManagedTensor** tensor, mf_error* error);

#ifdef __cplusplus
}
#endif

#endif
