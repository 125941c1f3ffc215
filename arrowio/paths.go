package arrowio

// expand gives the files that patterns stand for, in order.
func expand(patterns []string) ([]string, error) { return patterns, nil }
