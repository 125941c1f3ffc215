package library

import (
	"debug/elf"
	"io"
	"os"

	"github.com/meshfeed/meshfeed/core/status"
)

// checkWhole rejects a truncated library, for example after an interrupted
// download. Such a library may load and crash the process later. An ELF file ends
// with its section table, so a truncated file has no complete one. The dynamic
// loader checks files of other formats.
func checkWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return status.Errorf(status.NotFound, "gomlxfeed", "it cannot be read: %w", err)
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != elf.ELFMAG {
		return nil
	}
	if _, err := elf.NewFile(f); err != nil {
		return status.Errorf(status.DataLoss, "gomlxfeed", "it is damaged or truncated: its section table cannot be read").
			WithHint("copy or download it again")
	}
	return nil
}
