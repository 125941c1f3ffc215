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

/* Handles, like those of meshfeed.h. */
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
   Returns before it touches a file; see mf_wait. A child process tries a plugin
   first, so that a bad plugin is an error and not a crash. Options are a JSON
   object or NULL:
     "prober": "/path/meshfeed"     the program that tries the plugin, built for XLA too; left out:
                                    `meshfeed` on PATH
     "timeout_ms": 20000            the limit of that trial
     "preflight": false             no trial: a bad plugin may end this process
   mf_release closes the devices. Batches on them stay valid until their own
   release, and exported shards until their deleter is called. */
mf_status mf_devices_open(const char* spec, size_t spec_size, const char* options, size_t size,
                          mf_devices* devices, mf_error* error);

/* What the devices are, and what meshfeed holds on them:
     {"name": "virtual", "platform": "go", "api": "", "shared": true, "devices": ["..."],
      "dtypes": ["bool", "int8"], "live_buffers": 0, "live_bytes": 0}
   name is "go", "virtual", "xla-cpu", "xla-cuda" or "xla-tpu". shared is true where
   the devices use the host's memory. devices describes each device. */
mf_status mf_devices_info(mf_devices devices, mf_bytes* json, mf_error* error);

/* Makes a ring: memory on the devices that the batches of a layout use in turn. The
   id of a device in the layout is its number among these devices. MF_UNSUPPORTED
   for meshes of several processes or without axes, which the backends cannot
   express. */
mf_status mf_ring_create(mf_devices devices, mf_layout layout, mf_ring* ring, mf_error* error);

/* Where the shards of a batch are, for every array in the order of mf_tensor.array
   and every position of the mesh:
     {"arrays": [{"name": "image", "kind": "data", "dtype": "float32", "shape": [256, 8, 8],
                  "spec": ["data"], "shard_shape": [64, 8, 8],
                  "shards": [{"position": 0, "device": 0, "index": [[0, 64], [0, 8], [0, 8]]}]}]} */
mf_status mf_ring_info(mf_ring ring, mf_bytes* json, mf_error* error);

/* Copies the blocks of a batch to every device that holds them, and returns when
   the copies are complete. The batch must be of the ring's layout. It is only
   read, and may be released afterwards. */
mf_status mf_batch_place(const mf_batch* batch, mf_ring ring, mf_placed* placed, mf_error* error);

/* Copies the shard at a position of the mesh back to data, in C order. size is the
   size of the shard in bytes. */
mf_status mf_placed_read(mf_placed placed, int32_t array, int64_t position, void* data, int64_t size,
                         mf_error* error);

/* Exports the memory of a shard for consumers of DLPack 1.0, flagged read-only, and
   for older ones. MF_UNSUPPORTED where the devices do not share the host's memory.
   No other batch uses this memory before the deleter is called, also after the
   placed batch, the ring and the devices are released. The deleter must be called
   once, on any thread or in a forked child. The memory is aligned for its element
   type only. */
mf_status mf_placed_dlpack(mf_placed placed, int32_t array, int64_t position,
                           struct DLManagedTensorVersioned** tensor, mf_error* error);
mf_status mf_placed_dlpack_legacy(mf_placed placed, int32_t array, int64_t position,
                                  struct DLManagedTensor** tensor, mf_error* error);

#ifdef __cplusplus
}
#endif

#endif
