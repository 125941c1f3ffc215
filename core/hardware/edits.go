package hardware

// edits returns the least number of inserted, deleted and replaced bytes that
// turn one word into another. It returns 9 for long words.
func edits(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 9
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
