package hardware_test

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
)

// A kind of device, with the source of a number.
func ExampleFind() {
	kind, err := hardware.Find("h100-80")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(kind.Title, kind.Memory.Value, kind.FLOPs[hardware.BF16].Value, kind.PerNode)
	fmt.Println(kind.HBM.Source)

	_, err = hardware.Find("h100-90")
	fmt.Println(err)
	// Output:
	// NVIDIA H100 80 GB SXM 84932978278 989000000000000 8
	// NVIDIA H100 data sheet
	// hardware: there is no device kind "h100-90"; use "h100-80", "h100-pcie", or give the numbers of the device
}

// Two nodes of 8 devices, with a mesh of data 2 and tensor 8: the tensor axis stays in a node,
// and the data axis crosses the network.
func ExampleCluster_Axes() {
	kind, err := hardware.Find("h100-80")
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := kind.Cluster(16, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range cluster.Axes([]int{2, 8}) {
		fmt.Println(path.Size, "devices,", path.Tier(), path.Node.BytesPerSecond, path.Network.BytesPerSecond)
	}
	// Output:
	// 2 devices, network 450000000000 50000000000
	// 8 devices, node 450000000000 50000000000
}
