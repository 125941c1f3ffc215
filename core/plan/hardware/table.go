package hardware

// The units of data sheets.
const (
	gb     = 1_000_000_000
	gib    = 1 << 30
	gbit   = gb / 8 // bytes per second in 1 Gbit/s
	centi  = 100    // divides GiB that a program reports with two decimals
	tera   = 1_000_000_000_000
	tenths = tera / 10
)

// source is where numbers are published. date is the date of the document, or says when a
// page without a date was read.
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
	gb200Sheet = source{"NVIDIA GB200 NVL72 specifications", "read 2026-11"}
	gb300Sheet = source{"NVIDIA GB300 NVL72 specifications", "read 2026-11"}
	adaPaper   = source{"NVIDIA Ada GPU architecture whitepaper 2.1, appendix A, GeForce RTX 4090", "2023-04"}
	rtxPaper   = source{"NVIDIA RTX Blackwell GPU architecture whitepaper 1.1, appendix A, GeForce RTX 5090", "2025-01"}
	mi300Sheet = source{"AMD Instinct MI300X data sheet", "2023-12"}
	reported   = source{"total capacity in messages of PyTorch", "read 2026-11"}
	allocated  = source{"memory that XLA reports, libtpu 0.0.51", "read 2026-11"}
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

// torch returns the memory that a program gets: the least that PyTorch reports, in
// hundredths of a GiB. sheet is what the data sheet says.
func torch(hundredths int64, sheet string) Cell {
	return reported.cell(hundredths*gib/centi, "the least of several; the data sheet says "+sheet)
}

// libtpu is like torch for memory that XLA reports.
func libtpu(hundredths int64, sheet string) Cell {
	return allocated.cell(hundredths*gib/centi, "the data sheet says "+sheet)
}

// table has every kind. Memory is what programs get. That is more than a data sheet says if
// its GB are GiB, and less if error correction or the runtime takes a part.
//
// PerNode of TPUs is the largest slice. Slices with several hosts consist of virtual
// machines of four chips each, which is Host (docs.cloud.google.com/tpu/docs).
//
// Wrap of three dimensions is from docs.cloud.google.com/tpu/docs/v5p: "all 4x4x4 and
// larger slices have full 3D torus". Wrap of v5e and v6e, 16, is from Austin et al., "How
// to Scale Your Model", part 2, 2025.
//
// The name of a GPU in JAX is the product name that the driver reports. The names of TPUs
// are from jax/_src/mesh_utils.py and pallas/mosaic/tpu_info.py of JAX 0.10.
//
// To add a kind, append a row. A number without a source stays out.
var table = []Kind{
	{
		Name: "v100-32", Title: "NVIDIA V100 32 GB SXM3 (DGX-2)", Vendor: "NVIDIA",
		JAX:    []string{"Tesla V100-SXM3-32GB"},
		Memory: torch(3_173, "32 GB"), HBM: v100Sheet.cell(900*gb, ""),
		FLOPs:    map[Precision]Cell{FP16: dgx2.cell(125*tera, "2 petaFLOPS of 16 devices")},
		Topology: Switch, PerNode: 16,
		Node:    v100Sheet.cell(150*gb, bothWays),
		Network: dgx2.cell(50*gbit, "8 adapters of 100 Gbit/s for 16 devices"),
	},
	a100("a100-40", "NVIDIA A100 40 GB SXM", "NVIDIA A100-SXM4-40GB", torch(3_938, "40 GB"), 1_555*gb),
	a100("a100-80", "NVIDIA A100 80 GB SXM", "NVIDIA A100-SXM4-80GB", reported.cell(85_198_045_184, "the data sheet says 80 GB"), 2_039*gb),
	{
		Name: "a100-pcie", Title: "NVIDIA A100 80 GB PCIe", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA A100 80GB PCIe"},
		Memory: torch(7_914, "80 GB"), HBM: a100Sheet.cell(1_935*gb, ""),
		FLOPs: ampere(), Topology: PCIe, PerNode: 8,
		Node: a100Sheet.cell(32*gb, "half of 64 GB/s, the sheet adds both directions of PCIe; NVLink bridges join pairs only"),
	},
	{
		Name: "h100-80", Title: "NVIDIA H100 80 GB SXM", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA H100 80GB HBM3"},
		Memory: torch(7_910, "80 GB"), HBM: h100Sheet.cell(3_350*gb, ""),
		FLOPs: hopper(h100Sheet), Topology: Switch, PerNode: 8,
		Node:    h100Sheet.cell(450*gb, bothWays),
		Network: dgxH100.cell(400*gbit, "8 adapters of 400 Gbit/s for 8 devices"),
	},
	{
		Name: "h100-pcie", Title: "NVIDIA H100 80 GB PCIe", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA H100 PCIe"},
		Memory: torch(7_910, "80 GB"), HBM: h100Brief.cell(2_000*gb, "greater than 2,000 GB/s"),
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
		Memory: torch(13_972, "141 GB"), HBM: h200Sheet.cell(4_800*gb, ""),
		FLOPs: hopper(h200Sheet), Topology: Switch, PerNode: 8,
		Node:    h200Sheet.cell(450*gb, bothWays),
		Network: dgxH100.cell(400*gbit, "8 adapters of 400 Gbit/s for 8 devices, also of DGX H200"),
	},
	{
		Name: "b200-180", Title: "NVIDIA B200 180 GB (DGX B200)", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA B200"},
		Memory: torch(17_835, "180 GB"), HBM: b200Brief.cell(8_000*gb, "up to 8 TB/s"),
		FLOPs: map[Precision]Cell{
			BF16: b200Brief.cell(2_250*tera, "dense"), FP16: b200Brief.cell(2_250*tera, "dense"),
			FP8: b200Brief.cell(4_500*tera, "dense"), INT8: b200Brief.cell(4_500*tera, "dense"),
			TF32: b200Brief.cell(1_100*tera, "dense"), FP32: b200Brief.cell(80*tera, ""),
		},
		Topology: Switch, PerNode: 8,
		Node:    dgxB200.cell(900*gb, "14.4 TB/s of 8 devices and both directions"),
		Network: dgxB200.cell(400*gbit, "8 ports of 400 Gbit/s for 8 devices"),
	},
	blackwell("gb200-186", "NVIDIA GB200 (NVL72)", "NVIDIA GB200", torch(18_431, "186 GB"), gb200Sheet, dgxB200.cell(400*gbit, "one adapter of 400 Gbit/s, as in DGX B200")),
	blackwell("gb300-279", "NVIDIA GB300 (NVL72)", "NVIDIA GB300", gb300Sheet.cell(20*1000*gb/72, "20 TB of 72 devices"), gb300Sheet, gb300Sheet.cell(800*gbit, "72 adapters of 800 Gbit/s for 72 devices")),
	{
		Name: "rtx-4090", Title: "NVIDIA GeForce RTX 4090 24 GB", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA GeForce RTX 4090"},
		Memory: torch(2_364, "24 GB"), HBM: adaPaper.cell(1_008*gb, ""),
		FLOPs: map[Precision]Cell{
			BF16: adaPaper.cell(1_652*tenths, accumulated), FP16: adaPaper.cell(1_652*tenths, accumulated), FP8: adaPaper.cell(3_303*tenths, accumulated),
			TF32: adaPaper.cell(826*tenths, ""), FP32: adaPaper.cell(826*tenths, ""),
		},
		Topology: PCIe, PerNode: 8,
		Node: adaPaper.cell(32*gb, "PCIe 4.0 with 16 lanes"),
	},
	{
		Name: "rtx-5090", Title: "NVIDIA GeForce RTX 5090 32 GB", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA GeForce RTX 5090"},
		Memory: torch(3_136, "32 GB"), HBM: rtxPaper.cell(1_792*gb, ""),
		FLOPs: map[Precision]Cell{
			BF16: rtxPaper.cell(2_095*tenths, accumulated), FP16: rtxPaper.cell(2_095*tenths, accumulated), FP8: rtxPaper.cell(419*tera, accumulated),
			TF32: rtxPaper.cell(1_048*tenths, ""), FP32: rtxPaper.cell(1_048*tenths, ""),
		},
		Topology: PCIe, PerNode: 8,
		Node: rtxPaper.cell(64*gb, "PCIe 5.0 with 16 lanes"),
	},
	{
		Name: "mi300x-192", Title: "AMD Instinct MI300X 192 GB", Vendor: "AMD",
		JAX:    []string{"AMD Instinct MI300X"},
		Memory: torch(19_169, "192 GB"), HBM: mi300Sheet.cell(5_300*gb, ""),
		FLOPs: map[Precision]Cell{
			BF16: mi300Sheet.cell(13_074*tenths, ""), FP16: mi300Sheet.cell(13_074*tenths, ""),
			FP8: mi300Sheet.cell(26_149*tenths, ""), INT8: mi300Sheet.cell(26_149*tenths, ""),
			TF32: mi300Sheet.cell(6_537*tenths, ""), FP32: mi300Sheet.cell(1_634*tenths, ""),
		},
		Topology: Switch, PerNode: 8,
		Node: mi300Sheet.cell(448*gb, "half of 7 links of 128 GB/s, the sheet adds both directions"),
	},
	{
		Name: "l4-24", Title: "NVIDIA L4 24 GB", Vendor: "NVIDIA",
		JAX:    []string{"NVIDIA L4"},
		Memory: torch(2_203, "24 GB"), HBM: l4Sheet.cell(300*gb, ""),
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
		Memory: torch(4_440, "48 GB"), HBM: l40sSheet.cell(864*gb, ""),
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
		Memory: libtpu(3_050, "32 GiB"), HBM: tpuV4Docs.cell(1_200*gb, ""),
		FLOPs:    map[Precision]Cell{BF16: tpuV4Docs.cell(275*tera, ""), INT8: tpuV4Docs.cell(275*tera, "")},
		Topology: Torus3, PerNode: 4096, Host: 4, Wrap: 4,
		Node: tpuV4Paper.cell(300*gb, "6 links of 50 GB/s"),
	},
	{
		Name: "tpu-v5e", Title: "Google TPU v5e", Vendor: "Google",
		JAX:    []string{"TPU v5 lite", "TPU v5e"},
		Memory: libtpu(1_575, "16 GB"), HBM: tpuV5eDocs.cell(819*gb, "other versions of the page say 800 GiB/s, which is 5 % more"),
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
		Memory: libtpu(3_124, "32 GiB"), HBM: tpu7xDocs.cell(1_638*gb, ""),
		FLOPs:    map[Precision]Cell{BF16: tpu7xDocs.cell(918*tera, ""), FP8: tpu7xDocs.cell(918*tera, "")},
		Topology: Torus2, PerNode: 256, Host: 4, Wrap: 16,
		Node:    tpu7xDocs.cell(400*gb, bothWays),
		Network: tpu7xDocs.cell(100*gbit, ""),
	},
	{
		// A chip is two devices of JAX, which share its links.
		Name: "tpu-v7", Title: "Google TPU7x (Ironwood), half a chip", Vendor: "Google",
		JAX:    []string{"TPU7x"},
		Memory: libtpu(9_474, "192 GiB of a chip, which is two devices"), HBM: tpu7xDocs.cell(3_690*gb, halfChip("7,380 GB/s")),
		FLOPs: map[Precision]Cell{
			BF16: tpu7xDocs.cell(11_535*tenths, halfChip("2,307 TFLOP/s")), FP8: tpu7xDocs.cell(2_307*tera, halfChip("4,614 TFLOP/s")),
		},
		Topology: Torus3, PerNode: 2 * 9216, Host: 8, Wrap: 4,
		Node:    tpu7xDocs.cell(300*gb, halfChip("1,200 GB/s of both directions")),
		Network: tpu7xDocs.cell(50*gbit, halfChip("100 Gbit/s")),
	},
}

func halfChip(whole string) string { return "half of " + whole + ", a chip is two devices" }

func a100(name, title, jax string, memory Cell, hbm int64) Kind {
	return Kind{
		Name: name, Title: title, Vendor: "NVIDIA",
		JAX:    []string{jax},
		Memory: memory, HBM: a100Sheet.cell(hbm, ""),
		FLOPs: ampere(), Topology: Switch, PerNode: 8,
		Node:    a100Sheet.cell(300*gb, bothWays),
		Network: dgxA100.cell(200*gbit, "8 adapters of 200 Gbit/s for 8 devices"),
	}
}

// ampere returns the operations per second of every A100.
func ampere() map[Precision]Cell {
	return map[Precision]Cell{
		BF16: a100Sheet.cell(312*tera, ""), FP16: a100Sheet.cell(312*tera, ""), INT8: a100Sheet.cell(624*tera, ""),
		TF32: a100Sheet.cell(156*tera, ""), FP32: a100Sheet.cell(195*tenths, ""),
	}
}

// accumulated says which of several numbers of a sheet the table has.
const accumulated = "with sums in float32"

// blackwell returns a GPU of a rack of 72, all joined by links. A node has 64, as many as
// jobs use, so that a power of two fills nodes.
func blackwell(name, title, jax string, memory Cell, s source, network Cell) Kind {
	return Kind{
		Name: name, Title: title, Vendor: "NVIDIA",
		JAX:    []string{jax},
		Memory: memory, HBM: s.cell(8_000*gb, "576 TB/s of 72 devices"),
		FLOPs: map[Precision]Cell{
			BF16: s.cell(2_500*tera, sparse), FP16: s.cell(2_500*tera, sparse), FP8: s.cell(5_000*tera, sparse),
			TF32: s.cell(1_250*tera, sparse), FP32: s.cell(80*tera, ""),
		},
		Topology: Switch, PerNode: 64,
		Node: s.cell(900*gb, bothWays), Network: network,
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
