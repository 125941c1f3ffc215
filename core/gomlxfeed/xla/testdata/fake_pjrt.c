/*
 * fake_pjrt.c: a PJRT plugin whose devices are host memory. It places and reads
 * back, but cannot compile. The variable FAKE_PJRT configures it, as
 * "key=value;key=value":
 *
 *   platform=NAME           the platform that the client reports ("cpu")
 *   devices=N               the number of devices (2), unless option cpu_device_count is given
 *   stubborn=1              ignores that option
 *   ids=same|sparse         the hardware ids of the devices
 *   major=N minor=N size=N  version and size in the table
 *   attribute=NAME          an attribute of the plugin, an int64
 *   null=NAME,NAME          functions that the table lacks
 *   table=none              returns no table
 *   fail=NAME:CODE:TEXT     this function returns an error
 *   crash= abort= hang=NAME this function does not return
 *   corrupt=1               reading back returns other bytes
 *   lost=1                  every buffer reports the last device
 *
 * If FAKE_PJRT_LOG names a file, the plugin appends a line with the process id for
 * every option, client and buffer.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pjrt_c_api.h"

#ifndef FAKE_NAME
#define FAKE_NAME "FAKE" /* prefix of the device names */
#endif

struct PJRT_Error {
  PJRT_Error_Code code;
  char text[512];
};
struct PJRT_Event {
  int unused;
};
struct PJRT_DeviceDescription {
  char text[32];
};
struct PJRT_Device {
  int number, id;
  PJRT_DeviceDescription description;
};
struct PJRT_Client {
  size_t count;
  PJRT_Device* devices;
  PJRT_Device** list;
};
struct PJRT_Buffer {
  PJRT_Client* client;
  PJRT_Device* device;
  PJRT_Buffer_Type type;
  size_t rank, bytes;
  int64_t dims[8];
  char* data;
  int owned;
};

/* ---- settings and log ---- */

static const char* setting(const char* key, char* value, size_t size) {
  const char* at = getenv("FAKE_PJRT");
  size_t length = strlen(key);
  while (at && *at) {
    if (!strncmp(at, key, length) && at[length] == '=') {
      snprintf(value, size, "%.*s", (int)strcspn(at + length + 1, ";"), at + length + 1);
      return value;
    }
    at = strchr(at, ';');
    at = at ? at + 1 : NULL;
  }
  return NULL;
}

static int number(const char* key, int otherwise) {
  char value[32];
  return setting(key, value, sizeof value) ? atoi(value) : otherwise;
}

static void note(const char* text) {
  const char* path = getenv("FAKE_PJRT_LOG");
  FILE* log = path ? fopen(path, "a") : NULL;
  if (!log)
    return;
  fprintf(log, "%d %s\n", (int)getpid(), text);
  fclose(log);
}

static PJRT_Error* error(PJRT_Error_Code code, const char* text) {
  PJRT_Error* e = calloc(1, sizeof *e);
  e->code = code;
  snprintf(e->text, sizeof e->text, "%s", text);
  return e;
}

/* may_fail crashes, hangs or fails in a function if FAKE_PJRT says so. */
static PJRT_Error* may_fail(const char* function) {
  char value[512];
  size_t length = strlen(function);
  if (setting("crash", value, sizeof value) && !strcmp(value, function))
    raise(SIGSEGV);
  if (setting("abort", value, sizeof value) && !strcmp(value, function))
    abort();
  while (setting("hang", value, sizeof value) && !strcmp(value, function))
    sleep(1);
  if (setting("fail", value, sizeof value) && !strncmp(value, function, length) && value[length] == ':') {
    char* text = strchr(value + length + 1, ':');
    return error(atoi(value + length + 1), text ? text + 1 : "");
  }
  return NULL;
}

#define MAY_FAIL(function)                                                                                   \
  do {                                                                                                       \
    PJRT_Error* e = may_fail(#function);                                                                     \
    if (e)                                                                                                   \
      return e;                                                                                              \
  } while (0)

/* ---- errors, plugin, events ---- */

static void error_destroy(PJRT_Error_Destroy_Args* a) { free(a->error); }

static void error_message(PJRT_Error_Message_Args* a) {
  a->message = a->error->text;
  a->message_size = strlen(a->error->text);
}

static PJRT_Error* error_get_code(PJRT_Error_GetCode_Args* a) {
  a->code = a->error->code;
  return NULL;
}

static PJRT_Error* plugin_initialize(PJRT_Plugin_Initialize_Args* a) {
  (void)a;
  MAY_FAIL(PJRT_Plugin_Initialize);
  return NULL;
}

static PJRT_Error* plugin_attributes(PJRT_Plugin_Attributes_Args* a) {
  static char name[64];
  static PJRT_NamedValue value;
  MAY_FAIL(PJRT_Plugin_Attributes);
  a->num_attributes = setting("attribute", name, sizeof name) != NULL;
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = strlen(name);
  value.type = PJRT_NamedValue_kInt64;
  value.int64_value = 1;
  a->attributes = &value;
  return NULL;
}

static PJRT_Error* event_destroy(PJRT_Event_Destroy_Args* a) {
  free(a->event);
  return NULL;
}

static PJRT_Error* event_await(PJRT_Event_Await_Args* a) {
  (void)a;
  MAY_FAIL(PJRT_Event_Await);
  return NULL;
}

/* ---- clients and devices ---- */

static void note_option(const PJRT_NamedValue* v) {
  char text[256];
  int used = snprintf(text, sizeof text, "option %.*s ", (int)v->name_size, v->name);
  switch (v->type) {
  case PJRT_NamedValue_kInt64:
    snprintf(text + used, sizeof text - used, "int64 %lld", (long long)v->int64_value);
    break;
  case PJRT_NamedValue_kBool:
    snprintf(text + used, sizeof text - used, "bool %d", v->bool_value);
    break;
  case PJRT_NamedValue_kFloat:
    snprintf(text + used, sizeof text - used, "float %g", v->float_value);
    break;
  case PJRT_NamedValue_kInt64List:
    used += snprintf(text + used, sizeof text - used, "list");
    for (size_t i = 0; i < v->value_size; i++)
      used += snprintf(text + used, sizeof text - used, " %lld", (long long)v->int64_array_value[i]);
    break;
  default:
    snprintf(text + used, sizeof text - used, "string");
  }
  note(text);
}

static int hardware_id(int i) {
  char ids[32] = "";
  setting("ids", ids, sizeof ids);
  return !strcmp(ids, "same") ? -1 : !strcmp(ids, "sparse") ? 7 * i + 3 : i;
}

static PJRT_Error* client_create(PJRT_Client_Create_Args* a) {
  int count = number("devices", 2);
  MAY_FAIL(PJRT_Client_Create);
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue* v = &a->create_options[i];
    note_option(v);
    if (!strncmp(v->name, "cpu_device_count", v->name_size) && !number("stubborn", 0))
      count = (int)v->int64_value;
  }
  PJRT_Client* c = calloc(1, sizeof *c);
  c->count = (size_t)count;
  c->devices = calloc(c->count + 1, sizeof *c->devices);
  c->list = calloc(c->count + 1, sizeof *c->list);
  for (int i = 0; i < count; i++) {
    PJRT_Device* d = c->list[i] = &c->devices[i];
    d->number = i;
    d->id = hardware_id(i);
    snprintf(d->description.text, sizeof d->description.text, FAKE_NAME "_%d", i);
  }
  note("client+");
  a->client = c;
  return NULL;
}

static PJRT_Error* client_destroy(PJRT_Client_Destroy_Args* a) {
  MAY_FAIL(PJRT_Client_Destroy);
  note("client-");
  free(a->client->devices);
  free(a->client->list);
  free(a->client);
  return NULL;
}

static PJRT_Error* client_platform_name(PJRT_Client_PlatformName_Args* a) {
  static char name[64];
  MAY_FAIL(PJRT_Client_PlatformName);
  a->platform_name = setting("platform", name, sizeof name) ? name : "cpu";
  a->platform_name_size = strlen(a->platform_name);
  return NULL;
}

static PJRT_Error* client_platform_version(PJRT_Client_PlatformVersion_Args* a) {
  a->platform_version = "fake";
  a->platform_version_size = 4;
  return NULL;
}

static PJRT_Error* client_process_index(PJRT_Client_ProcessIndex_Args* a) {
  a->process_index = 0;
  return NULL;
}

static PJRT_Error* client_devices(PJRT_Client_Devices_Args* a) {
  a->devices = a->client->list;
  a->num_devices = a->client->count;
  return NULL;
}

static PJRT_Error* client_addressable_devices(PJRT_Client_AddressableDevices_Args* a) {
  MAY_FAIL(PJRT_Client_AddressableDevices);
  a->addressable_devices = a->client->list;
  a->num_addressable_devices = a->client->count;
  return NULL;
}

static PJRT_Error* client_compile(PJRT_Client_Compile_Args* a) {
  (void)a;
  return error(PJRT_Error_Code_UNIMPLEMENTED, "the fake plugin cannot compile");
}

static PJRT_Error* client_default_device_assignment(PJRT_Client_DefaultDeviceAssignment_Args* a) {
  for (size_t i = 0; i < a->default_assignment_size; i++)
    a->default_assignment[i] = (int)i;
  return NULL;
}

static PJRT_Error* device_get_description(PJRT_Device_GetDescription_Args* a) {
  MAY_FAIL(PJRT_Device_GetDescription);
  a->device_description = &a->device->description;
  return NULL;
}

static PJRT_Error* device_is_addressable(PJRT_Device_IsAddressable_Args* a) {
  a->is_addressable = 1;
  return NULL;
}

static PJRT_Error* device_local_hardware_id(PJRT_Device_LocalHardwareId_Args* a) {
  a->local_hardware_id = a->device->id;
  return NULL;
}

static PJRT_Error* description_process_index(PJRT_DeviceDescription_ProcessIndex_Args* a) {
  a->process_index = 0;
  return NULL;
}

static PJRT_Error* description_debug_string(PJRT_DeviceDescription_DebugString_Args* a) {
  a->debug_string = a->device_description->text;
  a->debug_string_size = strlen(a->debug_string);
  return NULL;
}

/* ---- buffers ---- */

static size_t element_size(PJRT_Buffer_Type t) {
  switch (t) {
  case PJRT_Buffer_Type_PRED:
  case PJRT_Buffer_Type_S8:
  case PJRT_Buffer_Type_U8:
    return 1;
  case PJRT_Buffer_Type_S16:
  case PJRT_Buffer_Type_U16:
  case PJRT_Buffer_Type_F16:
  case PJRT_Buffer_Type_BF16:
    return 2;
  case PJRT_Buffer_Type_S32:
  case PJRT_Buffer_Type_U32:
  case PJRT_Buffer_Type_F32:
    return 4;
  case PJRT_Buffer_Type_C128:
    return 16;
  default:
    return 8;
  }
}

static void note_buffer(const char* event, const PJRT_Buffer* b) {
  char text[64];
  snprintf(text, sizeof text, "%s device %d bytes %zu", event, b->device->number, b->bytes);
  note(text);
}

static PJRT_Buffer* buffer(PJRT_Client* client, PJRT_Device* device, PJRT_Buffer_Type type,
                           const int64_t* dims, size_t rank) {
  PJRT_Buffer* b = calloc(1, sizeof *b);
  b->client = client;
  b->device = device;
  b->type = type;
  b->rank = rank;
  b->bytes = element_size(type);
  for (size_t i = 0; i < rank; i++)
    b->bytes *= (size_t)(b->dims[i] = dims[i]);
  return b;
}

static void fill(PJRT_Buffer* b, const void* data) {
  b->owned = 1;
  b->data = aligned_alloc(64, b->bytes / 64 * 64 + 64);
  memcpy(b->data, data, b->bytes);
}

static PJRT_Error* buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args* a) {
  MAY_FAIL(PJRT_Client_BufferFromHostBuffer);
  a->buffer = buffer(a->client, a->device, a->type, a->dims, a->num_dims);
  fill(a->buffer, a->data);
  note_buffer("transfer+", a->buffer);
  a->done_with_host_buffer = calloc(1, sizeof(PJRT_Event));
  return NULL;
}

static PJRT_Error* create_view(PJRT_Client_CreateViewOfDeviceBuffer_Args* a) {
  MAY_FAIL(PJRT_Client_CreateViewOfDeviceBuffer);
  if ((size_t)a->device_buffer_ptr % 64)
    return error(PJRT_Error_Code_INVALID_ARGUMENT, "a view of memory that is not aligned");
  a->buffer = buffer(a->client, a->device, a->element_type, a->dims, a->num_dims);
  a->buffer->data = a->device_buffer_ptr;
  note_buffer("view+", a->buffer);
  return NULL;
}

static PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args* a) {
  MAY_FAIL(PJRT_Buffer_Destroy);
  note_buffer(a->buffer->owned ? "transfer-" : "view-", a->buffer);
  if (a->buffer->owned)
    free(a->buffer->data);
  free(a->buffer);
  return NULL;
}

static PJRT_Error* buffer_element_type(PJRT_Buffer_ElementType_Args* a) {
  a->type = a->buffer->type;
  return NULL;
}

static PJRT_Error* buffer_dimensions(PJRT_Buffer_Dimensions_Args* a) {
  a->dims = a->buffer->dims;
  a->num_dims = a->buffer->rank;
  return NULL;
}

static PJRT_Error* buffer_device(PJRT_Buffer_Device_Args* a) {
  PJRT_Client* c = a->buffer->client;
  MAY_FAIL(PJRT_Buffer_Device);
  a->device = number("lost", 0) ? c->list[c->count - 1] : a->buffer->device;
  return NULL;
}

static PJRT_Error* buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args* a) {
  a->buffer_pointer = (uintptr_t)a->buffer->data;
  return NULL;
}

static PJRT_Error* buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args* a) {
  PJRT_Buffer* from = a->buffer;
  MAY_FAIL(PJRT_Buffer_CopyToDevice);
  a->dst_buffer = buffer(from->client, a->dst_device, from->type, from->dims, from->rank);
  fill(a->dst_buffer, from->data);
  note_buffer("transfer+", a->dst_buffer);
  return NULL;
}

static PJRT_Error* buffer_to_host(PJRT_Buffer_ToHostBuffer_Args* a) {
  MAY_FAIL(PJRT_Buffer_ToHostBuffer);
  if (a->dst_size < a->src->bytes)
    return error(PJRT_Error_Code_INVALID_ARGUMENT, "the destination is too small");
  memcpy(a->dst, a->src->data, a->src->bytes);
  if (number("corrupt", 0))
    ((char*)a->dst)[0] ^= 1;
  a->event = calloc(1, sizeof(PJRT_Event));
  return NULL;
}

/* no_executables is every function that only a compiled program needs. */
static PJRT_Error* no_executables(void* a) {
  (void)a;
  return error(PJRT_Error_Code_UNIMPLEMENTED, "the fake plugin has no programs");
}

/* ---- the table ---- */

static PJRT_Api table = {
    .PJRT_Error_Destroy = error_destroy,
    .PJRT_Error_Message = error_message,
    .PJRT_Error_GetCode = error_get_code,
    .PJRT_Plugin_Initialize = plugin_initialize,
    .PJRT_Plugin_Attributes = plugin_attributes,
    .PJRT_Event_Destroy = event_destroy,
    .PJRT_Event_Await = event_await,
    .PJRT_Client_Create = client_create,
    .PJRT_Client_Destroy = client_destroy,
    .PJRT_Client_PlatformName = client_platform_name,
    .PJRT_Client_ProcessIndex = client_process_index,
    .PJRT_Client_PlatformVersion = client_platform_version,
    .PJRT_Client_Devices = client_devices,
    .PJRT_Client_AddressableDevices = client_addressable_devices,
    .PJRT_Client_Compile = client_compile,
    .PJRT_Client_DefaultDeviceAssignment = client_default_device_assignment,
    .PJRT_Client_BufferFromHostBuffer = buffer_from_host,
    .PJRT_DeviceDescription_ProcessIndex = description_process_index,
    .PJRT_DeviceDescription_DebugString = description_debug_string,
    .PJRT_Device_GetDescription = device_get_description,
    .PJRT_Device_IsAddressable = device_is_addressable,
    .PJRT_Device_LocalHardwareId = device_local_hardware_id,
    .PJRT_Executable_Destroy = (PJRT_Executable_Destroy*)no_executables,
    .PJRT_Executable_Name = (PJRT_Executable_Name*)no_executables,
    .PJRT_Executable_NumOutputs = (PJRT_Executable_NumOutputs*)no_executables,
    .PJRT_Executable_GetCompiledMemoryStats = (PJRT_Executable_GetCompiledMemoryStats*)no_executables,
    .PJRT_LoadedExecutable_Destroy = (PJRT_LoadedExecutable_Destroy*)no_executables,
    .PJRT_LoadedExecutable_GetExecutable = (PJRT_LoadedExecutable_GetExecutable*)no_executables,
    .PJRT_LoadedExecutable_Execute = (PJRT_LoadedExecutable_Execute*)no_executables,
    .PJRT_Buffer_Destroy = buffer_destroy,
    .PJRT_Buffer_ElementType = buffer_element_type,
    .PJRT_Buffer_Dimensions = buffer_dimensions,
    .PJRT_Buffer_Device = buffer_device,
    .PJRT_Buffer_CopyToDevice = buffer_copy_to_device,
    .PJRT_Buffer_ToHostBuffer = buffer_to_host,
    .PJRT_Buffer_UnsafePointer = buffer_unsafe_pointer,
    .PJRT_Client_CreateViewOfDeviceBuffer = create_view,
};

static void without(const char* name) {
#define LACK(function)                                                                                       \
  if (!strcmp(name, #function))                                                                              \
  table.function = NULL
  LACK(PJRT_Client_DefaultDeviceAssignment);
  LACK(PJRT_Client_CreateViewOfDeviceBuffer);
  LACK(PJRT_Event_Await);
  LACK(PJRT_Buffer_ToHostBuffer);
}

const PJRT_Api* GetPjrtApi(void) {
  char names[256] = "";
  if (setting("table", names, sizeof names))
    return NULL;
  may_fail("GetPjrtApi");
  table.struct_size = (size_t)number("size", PJRT_Api_STRUCT_SIZE);
  table.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  table.pjrt_api_version.major_version = number("major", PJRT_API_MAJOR);
  table.pjrt_api_version.minor_version = number("minor", PJRT_API_MINOR);
  setting("null", names, sizeof names);
  for (char* name = strtok(names, ","); name; name = strtok(NULL, ","))
    without(name);
  return &table;
}
