package pipeline

// step is a task of a stage without its times.
type step struct {
	work         Work
	chunk, micro int
}

// order returns the tasks of a stage in the order of their execution.
func order(kind Kind, stage, stages, micro, chunks int) []step {
	switch kind {
	case GPipe:
		return alternate(micro, micro, func(n int) step { return step{Forward, 0, n} }, func(n int) step { return step{Backward, 0, micro - 1 - n} })
	case Interleaved:
		return interleaved(stage, stages, micro, chunks)
	case ZeroBubble:
		return zeroBubble(stage, stages, micro)
	}
	return oneFOneB(stage, stages, micro)
}

// alternate returns the first forwards, then forward and backward in turn, then the
// rest of the backwards.
func alternate(first, total int, forward, backward func(n int) step) []step {
	first = min(first, total)
	steps := make([]step, 0, 3*total)
	for n := range first {
		steps = append(steps, forward(n))
	}
	for n := range total {
		if first+n < total {
			steps = append(steps, forward(first+n))
		}
		steps = append(steps, backward(n))
	}
	return steps
}

func oneFOneB(stage, stages, micro int) []step {
	return alternate(stages-1-stage, micro, func(n int) step { return step{Forward, 0, n} }, func(n int) step { return step{Backward, 0, n} })
}

// interleaved is the order of Megatron-LM's
// forward_backward_pipelining_with_interleaving: groups of as many micro-batches as
// stages go through chunk after chunk.
func interleaved(stage, stages, micro, chunks int) []step {
	at := func(n int) (chunk, i int) {
		return n % (stages * chunks) / stages, n/(stages*chunks)*stages + n%stages
	}
	forward := func(n int) step {
		chunk, i := at(n)
		return step{Forward, chunk, i}
	}
	backward := func(n int) step {
		chunk, i := at(n)
		return step{Backward, chunks - 1 - chunk, i}
	}
	return alternate(2*(stages-1-stage)+(chunks-1)*stages, micro*chunks, forward, backward)
}

// zeroBubble is the order of ZB-H1 in its authors' code: 1F1B, but stage s begins its
// weight gradients s micro-batches later than its backwards. Each stage then keeps
// at most as many micro-batches as there are stages.
func zeroBubble(stage, stages, micro int) []step {
	steps := make([]step, 0, 3*micro)
	weights := 0
	for _, s := range oneFOneB(stage, stages, micro) {
		steps = append(steps, s)
		if s.work == Backward && s.micro >= stage {
			steps = append(steps, step{Weight, 0, weights})
			weights++
		}
	}
	for ; weights < micro; weights++ {
		steps = append(steps, step{Weight, 0, weights})
	}
	return steps
}
