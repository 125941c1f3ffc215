/*
 * meshfeed_devices.h: batches on the devices of GoMLX backends, which are pure Go or a
 * PJRT plugin for CPUs, GPUs and TPUs. A program that copies host memory to a framework
 * of its own needs only meshfeed.h.
 */
#ifndef MESHFEED_DEVICES_H
#define MESHFEED_DEVICES_H

#include "meshfeed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Handles, as in meshfeed.h. */
typedef struct mf_devices {
  uint64_t id;
} mf_devices;

typedef struct mf_ring {
  uint64_t id;
} mf_ring;

typedef struct mf_device_batch {
  uint64_t id;
} mf_device_batch;

/* A flag of mf_devices_options: load the plugin without the trial. A bad plugin may
   then end this process. */
enum { MF_NO_PREFLIGHT = 1 };

/* How to open devices. Zeros are the defaults. */
typedef struct mf_devices_options {
  uint32_t struct_size; /* MF_DEVICES_OPTIONS_INIT sets it */
  uint32_t flags;       /* MF_NO_PREFLIGHT */
  const char* prober;   /* path of the program that tries the plugin, a `meshfeed` command built with
                           XLA. NULL: `meshfeed` on PATH */
  int64_t timeout_ms;   /* limit of that trial; 0: 20,000 */
} mf_devices_options;

#define MF_DEVICES_OPTIONS_INIT {sizeof(mf_devices_options), 0, NULL, 0}

/* Opens devices by their specification:
     go                             one device, in pure Go
     virtual:N                      N such devices, to test layouts on any machine
     xla:/abs/plugin.so?devices=N   a PJRT plugin (CPU, CUDA, TPU), in a library built with XLA
   A child process tries a plugin first, so that a bad plugin is an error instead of a
   crash. options may be NULL. Returns before it touches a file; see mf_wait. mf_release
   closes the devices. Batches on them stay valid until their own release, and exported
   shards until their deleter is called. */
mf_status mf_devices_open(const char* spec, size_t spec_size, const mf_devices_options* options,
                          mf_devices* devices, mf_error* error);

/* Describes the devices, and what meshfeed holds on them:
     {"name": "virtual", "platform": "go", "api": "", "shared": true, "devices": ["..."],
      "dtypes": ["bool", "int8"], "live_buffers": 0, "live_bytes": 0}
   name is "go", "virtual", "xla-cpu", "xla-cuda" or "xla-tpu". shared is true if the
   devices use host memory. devices has one description per device. */
mf_status mf_devices_info(mf_devices devices, mf_bytes* json, mf_error* error);

/* Creates a ring: memory on the devices that the batches of a layout use in turn. The id
   of a device in the layout is its index among these devices. MF_UNSUPPORTED for a mesh
   of several processes or without axes, which GoMLX backends cannot express. */
mf_status mf_ring_create(mf_devices devices, mf_layout layout, mf_ring* ring, mf_error* error);

/* Describes the shards of a batch: for every array, in the order of mf_tensor.array, the
   shard of every mesh position:
     {"arrays": [{"name": "image", "kind": "data", "dtype": "float32", "shape": [256, 8, 8],
                  "spec": ["data"], "shard_shape": [64, 8, 8],
                  "shards": [{"position": 0, "device": 0, "index": [[0, 64], [0, 8], [0, 8]]}]}]} */
mf_status mf_ring_info(mf_ring ring, mf_bytes* json, mf_error* error);

/* Copies the blocks of a batch to every device that holds them. Returns when the copies
   are complete. The batch must have the layout of the ring. It may be released after
   this call. */
mf_status mf_ring_transfer(mf_ring ring, const mf_batch* batch, mf_device_batch* device_batch,
                           mf_error* error);

/* Copies the shard at a mesh position back to data, in C order. size is the size of the
   shard in bytes. */
mf_status mf_device_batch_read(mf_device_batch device_batch, int32_t array, int64_t position, void* data,
                               int64_t size, mf_error* error);

/* Exports the memory of a shard as a DLPack 1.0 tensor, which is flagged read-only, or as
   a tensor of older DLPack versions. MF_UNSUPPORTED if the devices do not share host
   memory. Until the deleter is called, no other batch uses this memory, even after the
   device batch, the ring and the devices are released. Call the deleter exactly once, on
   any thread or in a forked child. The memory is aligned for its element type only. */
mf_status mf_device_batch_dlpack(mf_device_batch device_batch, int32_t array, int64_t position,
                                 struct DLManagedTensorVersioned** tensor, mf_error* error);
mf_status mf_device_batch_dlpack_legacy(mf_device_batch device_batch, int32_t array, int64_t position,
                                        struct DLManagedTensor** tensor, mf_error* error);

#ifdef __cplusplus
}
#endif

#endif
