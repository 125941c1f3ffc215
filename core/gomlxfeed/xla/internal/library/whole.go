package library

import (
	"debug/elf"
	"io"
	"os"

	"github.com/meshfeed/meshfeed/core/status"
)

// checkWhole refuses a library that was cut off, as by a download that broke:
// it may load, and end the process when its missing part is reached. The table
// of an ELF file's sections is its end. Other files are left to the loader.
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
		return status.Errorf(status.DataLoss, "gomlxfeed", "it is damaged or cut off: its table of sections cannot be read").
			WithHint("copy or download it again")
	}
	return nil
}
