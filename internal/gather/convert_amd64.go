package gather

// fast returns the assembly kernel of a conversion.
func (c Conversion) fast() func(dst, src *byte, n int) int {
	switch c {
	case Int64ToInt32:
		return narrowIntsAVX2
	case Uint64ToUint32:
		return narrowUintsAVX2
	default:
		return narrowFloatsAVX2
	}
}

//go:noescape
func narrowIntsAVX2(dst, src *byte, n int) int

//go:noescape
func narrowUintsAVX2(dst, src *byte, n int) int

//go:noescape
func narrowFloatsAVX2(dst, src *byte, n int) int
