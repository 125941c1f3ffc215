package levels

import "github.com/meshfeed/meshfeed/internal/parquet/encoding"

// segment is a part of the levels of a page that were not added yet: a long run of one
// level, or several runs in bit planes.
type segment struct {
	runs   *encoding.Runs
	next   encoding.Run // what was read and is in no segment, if its Count is not 0
	left   int          // levels
	same   bool         // all levels are value
	value  uint32
	planes encoding.Planes              // unless same: the last levels in them are left
	words  [encoding.PlanesWidth]uint64 // words of the planes, from the next level on
}

// fill makes the next segment, unless a part of one is left. The page has n more levels.
func (s *segment) fill(n int) error {
	if s.left > 0 {
		return nil
	}
	if s.runs.Width() == 0 {
		s.left, s.same, s.value = n, true, 0
		return nil
	}
	s.planes.Reset()
	for most := min(n, encoding.PlanesCount); s.planes.Count < most; {
		if s.next.Count == 0 {
			s.planes.Short(s.runs)
			if s.planes.Count >= most {
				break
			}
			run, err := s.runs.Next()
			if err != nil {
				return err
			}
			s.next = run
		}
		if s.next.Packed == nil && s.next.Count >= encoding.LongRun {
			if s.planes.Count > 0 {
				break
			}
			s.left, s.same, s.value = s.next.Count, true, s.next.Value
			s.next.Count = 0
			return nil
		}
		s.planes.Add(&s.next, s.runs.Width())
	}
	s.left, s.same = s.planes.Count, false
	return nil
}

// read reads the next levels, up to 64, into the words.
func (s *segment) read() {
	if s.same {
		return
	}
	for k := range s.runs.Width() {
		s.words[k] = s.planes.Word(k, s.planes.Count-s.left)
	}
}

// from returns a word with a one for each of the next levels that is at least level.
func (s *segment) from(level uint32) uint64 {
	width := s.runs.Width()
	if s.same && s.value >= level {
		return ones(64)
	}
	if s.same || level>>width != 0 {
		return 0
	}
	more := ones(64) // bit i: the lower bits of level i are at least the lower bits of level
	for k, bits := range s.words[:width] {
		if level>>k&1 == 1 {
			more &= bits
		} else {
			more |= bits
		}
	}
	return more
}

// level returns level i of the next ones.
func (s *segment) level(i int) (level uint32) {
	if s.same {
		return s.value
	}
	for k, bits := range s.words[:s.runs.Width()] {
		level |= uint32(bits>>i&1) << k
	}
	return level
}

// skip drops n levels.
func (s *segment) skip(n int) { s.left -= n }
