package library

import "slices"

// functions lists the entries of the table in order, up to the last one in use. A
// test compares the list with go-xla's C header.
var functions = []string{
	"PJRT_Error_Destroy",
	"PJRT_Error_Message",
	"PJRT_Error_GetCode",
	"PJRT_Plugin_Initialize",
	"PJRT_Plugin_Attributes",
	"PJRT_Event_Destroy",
	"PJRT_Event_IsReady",
	"PJRT_Event_Error",
	"PJRT_Event_Await",
	"PJRT_Event_OnReady",
	"PJRT_Client_Create",
	"PJRT_Client_Destroy",
	"PJRT_Client_PlatformName",
	"PJRT_Client_ProcessIndex",
	"PJRT_Client_PlatformVersion",
	"PJRT_Client_Devices",
	"PJRT_Client_AddressableDevices",
	"PJRT_Client_LookupDevice",
	"PJRT_Client_LookupAddressableDevice",
	"PJRT_Client_AddressableMemories",
	"PJRT_Client_Compile",
	"PJRT_Client_DefaultDeviceAssignment",
	"PJRT_Client_BufferFromHostBuffer",
	"PJRT_DeviceDescription_Id",
	"PJRT_DeviceDescription_ProcessIndex",
	"PJRT_DeviceDescription_Attributes",
	"PJRT_DeviceDescription_Kind",
	"PJRT_DeviceDescription_DebugString",
	"PJRT_DeviceDescription_ToString",
	"PJRT_Device_GetDescription",
	"PJRT_Device_IsAddressable",
	"PJRT_Device_LocalHardwareId",
	"PJRT_Device_AddressableMemories",
	"PJRT_Device_DefaultMemory",
	"PJRT_Device_MemoryStats",
	"PJRT_Memory_Id",
	"PJRT_Memory_Kind",
	"PJRT_Memory_DebugString",
	"PJRT_Memory_ToString",
	"PJRT_Memory_AddressableByDevices",
	"PJRT_Executable_Destroy",
	"PJRT_Executable_Name",
	"PJRT_Executable_NumReplicas",
	"PJRT_Executable_NumPartitions",
	"PJRT_Executable_NumOutputs",
	"PJRT_Executable_SizeOfGeneratedCodeInBytes",
	"PJRT_Executable_GetCostAnalysis",
	"PJRT_Executable_OutputMemoryKinds",
	"PJRT_Executable_OptimizedProgram",
	"PJRT_Executable_Serialize",
	"PJRT_LoadedExecutable_Destroy",
	"PJRT_LoadedExecutable_GetExecutable",
	"PJRT_LoadedExecutable_AddressableDevices",
	"PJRT_LoadedExecutable_Delete",
	"PJRT_LoadedExecutable_IsDeleted",
	"PJRT_LoadedExecutable_Execute",
	"PJRT_Executable_DeserializeAndLoad",
	"PJRT_LoadedExecutable_Fingerprint",
	"PJRT_Buffer_Destroy",
	"PJRT_Buffer_ElementType",
	"PJRT_Buffer_Dimensions",
	"PJRT_Buffer_UnpaddedDimensions",
	"PJRT_Buffer_DynamicDimensionIndices",
	"PJRT_Buffer_GetMemoryLayout",
	"PJRT_Buffer_OnDeviceSizeInBytes",
	"PJRT_Buffer_Device",
	"PJRT_Buffer_Memory",
	"PJRT_Buffer_Delete",
	"PJRT_Buffer_IsDeleted",
	"PJRT_Buffer_CopyToDevice",
	"PJRT_Buffer_ToHostBuffer",
	"PJRT_Buffer_IsOnCpu",
	"PJRT_Buffer_ReadyEvent",
	"PJRT_Buffer_UnsafePointer",
	"PJRT_Buffer_IncreaseExternalReferenceCount",
	"PJRT_Buffer_DecreaseExternalReferenceCount",
	"PJRT_Buffer_OpaqueDeviceMemoryDataPointer",
	"PJRT_CopyToDeviceStream_Destroy",
	"PJRT_CopyToDeviceStream_AddChunk",
	"PJRT_CopyToDeviceStream_TotalBytes",
	"PJRT_CopyToDeviceStream_GranuleSize",
	"PJRT_CopyToDeviceStream_CurrentBytes",
	"PJRT_TopologyDescription_Create",
	"PJRT_TopologyDescription_Destroy",
	"PJRT_TopologyDescription_PlatformName",
	"PJRT_TopologyDescription_PlatformVersion",
	"PJRT_TopologyDescription_GetDeviceDescriptions",
	"PJRT_TopologyDescription_Serialize",
	"PJRT_TopologyDescription_Attributes",
	"PJRT_Compile",
	"PJRT_Executable_OutputElementTypes",
	"PJRT_Executable_OutputDimensions",
	"PJRT_Buffer_CopyToMemory",
	"PJRT_Client_CreateViewOfDeviceBuffer",
	"PJRT_Executable_Fingerprint",
	"PJRT_Client_TopologyDescription",
	"PJRT_Executable_GetCompiledMemoryStats",
}

// Required lists the functions that go-xla calls without checking that they exist.
func Required() []string {
	return []string{
		"PJRT_Error_Destroy", "PJRT_Error_Message", "PJRT_Error_GetCode",
		"PJRT_Plugin_Initialize", "PJRT_Plugin_Attributes",
		"PJRT_Event_Destroy", "PJRT_Event_Await",
		"PJRT_Client_Create", "PJRT_Client_Destroy", "PJRT_Client_PlatformName", "PJRT_Client_ProcessIndex",
		"PJRT_Client_PlatformVersion", "PJRT_Client_Devices", "PJRT_Client_AddressableDevices",
		"PJRT_Client_Compile", "PJRT_Client_DefaultDeviceAssignment", "PJRT_Client_BufferFromHostBuffer",
		"PJRT_DeviceDescription_ProcessIndex", "PJRT_DeviceDescription_DebugString",
		"PJRT_Device_GetDescription", "PJRT_Device_IsAddressable", "PJRT_Device_LocalHardwareId",
		"PJRT_Executable_Destroy", "PJRT_Executable_Name", "PJRT_Executable_NumOutputs",
		"PJRT_LoadedExecutable_Destroy", "PJRT_LoadedExecutable_GetExecutable", "PJRT_LoadedExecutable_Execute",
		"PJRT_Buffer_Destroy", "PJRT_Buffer_ElementType", "PJRT_Buffer_Dimensions", "PJRT_Buffer_Device",
		"PJRT_Buffer_CopyToDevice", "PJRT_Buffer_ToHostBuffer",
		"PJRT_Executable_GetCompiledMemoryStats",
	}
}

// ForSharing lists the functions that shared memory needs.
func ForSharing() []string {
	return []string{"PJRT_Client_CreateViewOfDeviceBuffer", "PJRT_Buffer_UnsafePointer"}
}

func entry(function string) int {
	i := slices.Index(functions, function)
	if i < 0 {
		panic(function + " is not in the table")
	}
	return i
}
