package hardware

// The units of data sheets.
const (
	gb     = 1_000_000_000
	gib    = 1 << 30
	gbit   = gb / 8 // of a bandwidth in Gbit/s
	tera   = 1_000_000_000_000
	tenths = tera / 10
)

// source is where numbers are published. date is that of the document, or says when a page
// without a date was read.
type source struct{ text, date string }

func (s source) cell(value int64, how string) Cell {
	text := s.text
	if how != "" {
		text += ": " + how
	}
	return Cell{Value: value, Source: text, Date: s.date}
}

var (
	v100Sheet  = source{"NVIDIA V100 data sheet 1165301-r5, SXM2", "2020-01"}
	dgx2       = source{"NVIDIA DGX-2 data sheet", "2018-03"}
	a100Sheet  = source{"NVIDIA A100 data sheet 1758950-r4", "2021-06"}
	dgxA100    = source{"NVIDIA DGX A100 user guide DU-09821-001", "2020-05"}
	h100Sheet  = source{"NVIDIA H100 data sheet", "read 2026-11"}
	h100Brief  = source{"NVIDIA H100 PCIe product brief PB-11133-001", "2022-11"}
	dgxH100    = source{"docs.nvidia.com/dgx/dgxh100-user-guide", "read 2026-11"}
	h200Sheet  = source{"NVIDIA H200 data sheet", "read 2026-11"}
	b200Brief  = source{"NVIDIA Blackwell architecture technical brief, HGX B200", "read 2026-11"}
	dgxB200    = source{"docs.nvidia.com/dgx/dgxb200-user-guide", "read 2026-11"}
	l4Sheet    = source{"NVIDIA L4 data sheet", "read 2026-11"}
	l40sSheet  = source{"NVIDIA L40S data sheet", "read 2026-11"}
	tpuV4Paper = source{"Jouppi et al., TPU v4, arXiv 2304.01433, table 4", "2023-04"}
	tpuV4Docs  = source{"docs.cloud.google.com/tpu/docs/v4", "read 2026-11"}
	tpuV5eDocs = source{"docs.cloud.google.com/tpu/docs/v5e", "read 2026-11"}
	tpuV5pDocs = source{"docs.cloud.google.com/tpu/docs/v5p", "read 2026-11"}
	tpu7xDocs  = source{"docs.cloud.google.com/tpu/docs/tpu7x", "read 2026-11"} // the page has numbers of v6e too
)

const (
	bothWays = "half, the sheet adds both directions"
	sparse   = "half, the sheet counts sparsity"
)

// table has every kind. Memory is what the sheet says, and a GB of it is 10^9 bytes.
// Programs get more of the HBM of GPUs, v5e and v5p: 85,198,045,184 bytes of an A100
// 80 GB, and 15.75 GiB of v5e. They get less if error correction or the runtime takes a
// part. PyTorch reports 22.03 GiB of an L4 and 44.53 GiB of an L40S.
// XLA (libtpu 0.0.51) reports 30.5 GiB of v4, 31.24 GiB of v6e and 94.74 GiB of half a
// TPU7x. That is at most 5 % less, within the planner's margin.
//
// PerNode of TPUs is the largest slice. Slices with several hosts consist of virtual
// machines of four chips each, which is Host (docs.cloud.google.com/tpu/docs).
//
// Wrap of three dimensions is from docs.cloud.google.com/tpu/docs/v5p: "all 4x4x4 and
// larger slices have full 3D torus". Wrap of v5e and v6e, 16, is from Austin et al., "How
// to Scale Your Model", part 2, 2025.
//
// The name of a GPU in JAX is the product name that the driver reports. The names of TPUs
// are those in jax/_src/mesh_utils.py and pallas/mosaic/tpu_info.py of JAX 0.10.
//
// To add a kind, append a row. A number without a source stays out.
var table = []Kind{
	{
		Name: "v100-32", Title: "NVIDIA V100 32 GB SXM3 (DGX-2)", Vendor: "NVIDIA",
		JAX:    []string{"Tesla V100-SXM3-32GB"},
		Memory: dgx2.cell(32*gb, "512 GB of 16 devices"), HBM: v100Sheet.cell(900*gb, ""),
		FLOPs:    map[Precision]Cell{FP16: dgx2.cell(125*tera, "2 petaFLOPS of 16 devices")},
		Topology: Switch, PerNode: 16,
		Node:    v100Sheet.cell(150*gb, bothWays),
		Network: dgx2.cell(50*gbit, "8 adapters of 100 Gbit/s for 16 devices"),
	},
	a100("a100-40", "NVIDIA A100 40 GB SXM", "NVIDIA A100-SXM4-40GB", 40*gb, 1_555*gb),
	a100("a100-80", "NVIDIA A100 80 GB SXM", "NVIDIA A100-SXM4-80GB", 80*gb, 2_039*gb),
	{
		Name: "h100-80", Title: "NVIDIA H100 80 GB SXM", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA H100 80GB HBM3"},
		Memory: h100Sheet.cell(80*gb, ""), HBM: h100Sheet.cell(3_350*gb, ""),
		FLOPs: hopper(h100Sheet), Topology: Switch, PerNode: 8,
		Node:    h100Sheet.cell(450*gb, bothWays),
		Network: dgxH100.cell(400*gbit, "8 adapters of 400 Gbit/s for 8 devices"),
	},
	{
		Name: "h100-pcie", Title: "NVIDIA H100 80 GB PCIe", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA H100 PCIe"},
		Memory: h100Sheet.cell(80*gb, ""), HBM: h100Brief.cell(2_000*gb, "greater than 2,000 GB/s"),
		FLOPs: map[Precision]Cell{
			BF16: h100Sheet.cell(756*tera, sparse), FP16: h100Sheet.cell(756*tera, sparse),
			FP8: h100Sheet.cell(1_513*tera, sparse), INT8: h100Sheet.cell(1_513*tera, sparse),
			TF32: h100Sheet.cell(378*tera, sparse), FP32: h100Sheet.cell(51*tera, ""),
		},
		Topology: PCIe, PerNode: 8,
		Node: h100Sheet.cell(64*gb, "half, the sheet adds both directions of PCIe; NVLink bridges join pairs only"),
	},
	{
		Name: "h200-141", Title: "NVIDIA H200 141 GB SXM", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA H200"},
		Memory: h200Sheet.cell(141*gb, ""), HBM: h200Sheet.cell(4_800*gb, ""),
		FLOPs: hopper(h200Sheet), Topology: Switch, PerNode: 8,
		Node:    h200Sheet.cell(450*gb, bothWays),
		Network: dgxH100.cell(400*gbit, "8 adapters of 400 Gbit/s for 8 devices, also of DGX H200"),
	},
	{
		Name: "b200-180", Title: "NVIDIA B200 180 GB (DGX B200)", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA B200"},
		Memory: dgxB200.cell(180*gb, "1,440 GB of 8 devices"), HBM: b200Brief.cell(8_000*gb, "up to 8 TB/s"),
		FLOPs: map[Precision]Cell{
			BF16: b200Brief.cell(2_250*tera, "dense"), FP16: b200Brief.cell(2_250*tera, "dense"),
			FP8: b200Brief.cell(4_500*tera, "dense"), INT8: b200Brief.cell(4_500*tera, "dense"),
			TF32: b200Brief.cell(1_100*tera, "dense"), FP32: b200Brief.cell(80*tera, ""),
		},
		Topology: Switch, PerNode: 8,
		Node:    dgxB200.cell(900*gb, "14.4 TB/s of 8 devices and both directions"),
		Network: dgxB200.cell(400*gbit, "8 ports of 400 Gbit/s for 8 devices"),
	},
	{
		Name: "l4-24", Title: "NVIDIA L4 24 GB", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA L4"},
		Memory: l4Sheet.cell(24*gb, ""), HBM: l4Sheet.cell(300*gb, ""),
		FLOPs: map[Precision]Cell{
			BF16: l4Sheet.cell(121*tera, sparse), FP16: l4Sheet.cell(121*tera, sparse),
			FP8: l4Sheet.cell(2_425*tenths, sparse), INT8: l4Sheet.cell(2_425*tenths, sparse),
			TF32: l4Sheet.cell(60*tera, sparse), FP32: l4Sheet.cell(303*tenths, ""),
		},
		Topology: PCIe, PerNode: 8,
		Node: l4Sheet.cell(32*gb, "half of 64 GB/s, the sheet adds both directions of PCIe"),
	},
	{
		Name: "l40s-48", Title: "NVIDIA L40S 48 GB", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA L40S"},
		Memory: l40sSheet.cell(48*gb, ""), HBM: l40sSheet.cell(864*gb, ""),
		FLOPs: map[Precision]Cell{
			BF16: l40sSheet.cell(362_050*gb, ""), FP16: l40sSheet.cell(362_050*gb, ""),
			FP8: l40sSheet.cell(733*tera, ""), INT8: l40sSheet.cell(733*tera, ""),
			TF32: l40sSheet.cell(183*tera, ""), FP32: l40sSheet.cell(916*tenths, ""),
		},
		Topology: PCIe, PerNode: 8,
		Node: l40sSheet.cell(32*gb, "half of 64 GB/s, the sheet adds both directions of PCIe"),
	},
	{
		Name: "tpu-v4", Title: "Google TPU v4", Vendor: "Google",
		JAX:    []string{"TPU v4"},
		Memory: tpuV4Docs.cell(32*gib, "32 GiB"), HBM: tpuV4Docs.cell(1_200*gb, ""),
		FLOPs:    map[Precision]Cell{BF16: tpuV4Docs.cell(275*tera, ""), INT8: tpuV4Docs.cell(275*tera, "")},
		Topology: Torus3, PerNode: 4096, Host: 4, Wrap: 4,
		Node: tpuV4Paper.cell(300*gb, "6 links of 50 GB/s"),
	},
	{
		Name: "tpu-v5e", Title: "Google TPU v5e", Vendor: "Google",
		JAX:    []string{"TPU v5 lite", "TPU v5e"},
		Memory: tpuV5eDocs.cell(16*gb, ""), HBM: tpuV5eDocs.cell(819*gb, "other versions of the page say 800 GiB/s, which is 5 % more"),
		FLOPs:    map[Precision]Cell{BF16: tpuV5eDocs.cell(197*tera, ""), INT8: tpuV5eDocs.cell(393*tera, "")},
		Topology: Torus2, PerNode: 256, Host: 4, Wrap: 16,
		Node:    tpuV5eDocs.cell(200*gb, bothWays),
		Network: tpuV5eDocs.cell(25*gbit, "6.4 Tbit/s of a pod of 256"),
	},
	{
		Name: "tpu-v5p", Title: "Google TPU v5p", Vendor: "Google",
		JAX:    []string{"TPU v5", "TPU v5p"},
		Memory: tpuV5pDocs.cell(95*gib, "95 of 96 GiB, the system keeps the rest"), HBM: tpuV5pDocs.cell(2_765*gb, "other versions of the page say 2,575 GiB/s, which is the same"),
		FLOPs:    map[Precision]Cell{BF16: tpuV5pDocs.cell(459*tera, ""), FP8: tpuV5pDocs.cell(459*tera, "")},
		Topology: Torus3, PerNode: 6144, Host: 4, Wrap: 4,
		Node:    tpuV5pDocs.cell(600*gb, bothWays),
		Network: tpuV5pDocs.cell(50*gbit, ""),
	},
	{
		Name: "tpu-v6e", Title: "Google TPU v6e (Trillium)", Vendor: "Google",
		JAX:    []string{"TPU v6 lite", "TPU v6e"},
		Memory: tpu7xDocs.cell(32*gib, "32 GiB"), HBM: tpu7xDocs.cell(1_638*gb, ""),
		FLOPs:    map[Precision]Cell{BF16: tpu7xDocs.cell(918*tera, ""), FP8: tpu7xDocs.cell(918*tera, "")},
		Topology: Torus2, PerNode: 256, Host: 4, Wrap: 16,
		Node:    tpu7xDocs.cell(400*gb, bothWays),
		Network: tpu7xDocs.cell(100*gbit, ""),
	},
	{
		// A chip is two devices of JAX, which share its links.
		Name: "tpu-v7", Title: "Google TPU7x (Ironwood), half a chip", Vendor: "Google",
		JAX:    []string{"TPU7x"},
		Memory: tpu7xDocs.cell(96*gib, halfChip("192 GiB")), HBM: tpu7xDocs.cell(3_690*gb, halfChip("7,380 GB/s")),
		FLOPs: map[Precision]Cell{
			BF16: tpu7xDocs.cell(11_535*tenths, halfChip("2,307 TFLOP/s")), FP8: tpu7xDocs.cell(2_307*tera, halfChip("4,614 TFLOP/s")),
		},
		Topology: Torus3, PerNode: 2 * 9216, Host: 8, Wrap: 4,
		Node:    tpu7xDocs.cell(300*gb, halfChip("1,200 GB/s of both directions")),
		Network: tpu7xDocs.cell(50*gbit, halfChip("100 Gbit/s")),
	},
}

func halfChip(whole string) string { return "half of " + whole + ", a chip is two devices" }

func a100(name, title, jax string, memory, hbm int64) Kind {
	return Kind{
		Name: name, Title: title, Vendor: "NVIDIA",
		JAX:    []string{jax},
		Memory: a100Sheet.cell(memory, ""), HBM: a100Sheet.cell(hbm, ""),
		FLOPs: map[Precision]Cell{
			BF16: a100Sheet.cell(312*tera, ""), FP16: a100Sheet.cell(312*tera, ""), INT8: a100Sheet.cell(624*tera, ""),
			TF32: a100Sheet.cell(156*tera, ""), FP32: a100Sheet.cell(195*tenths, ""),
		},
		Topology: Switch, PerNode: 8,
		Node:    a100Sheet.cell(300*gb, bothWays),
		Network: dgxA100.cell(200*gbit, "8 adapters of 200 Gbit/s for 8 devices"),
	}
}

// hopper returns the operations per second of the H100 SXM and the H200 SXM,
// which have the same processor.
func hopper(s source) map[Precision]Cell {
	return map[Precision]Cell{
		BF16: s.cell(989*tera, sparse), FP16: s.cell(989*tera, sparse),
		FP8: s.cell(1_979*tera, sparse), INT8: s.cell(1_979*tera, sparse),
		TF32: s.cell(494*tera, sparse), FP32: s.cell(67*tera, ""),
	}
}
