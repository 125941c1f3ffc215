package pipeline

// BubbleShare returns the closed form of the share of time that stages are idle, as
// a ratio, for equal parts. Efficiency is one minus the share. The counts must pass
// [Check].
//
//   - GPipe and 1F1B: (p-1) / (m+p-1) [arXiv 1811.06965, section 2.3; arXiv 2104.04473,
//     section 2.2.1, has the bubble over the ideal time, (p-1)/m].
//   - Interleaved: (p-1) / (v·m+p-1) [arXiv 2104.04473, section 2.2.2: (p-1)/(v·m) of
//     the ideal time].
//   - ZeroBubble: (p-1) / (3m+p-1) if a micro-batch's three tasks take equally long
//     [arXiv 2401.10241, table 2: (p-1)(F+B-W) ticks]. The paper assumes m ≥ p. For
//     m < p, each stage is idle for 2p-1-m ticks, because too few weight gradients
//     are left to fill them; this form is from the timelines.
func BubbleShare(kind Kind, stages, micro, chunks int) (num, den int64) {
	p, m, v := int64(stages), int64(micro), int64(chunks)
	switch kind {
	case Interleaved:
		return p - 1, v*m + p - 1
	case ZeroBubble:
		idle := p - 1 + max(p-m, 0)
		return idle, 3*m + idle
	}
	return p - 1, m + p - 1
}

// LiveFormula returns the closed form of [Timeline.PeakLive].
//
//   - GPipe keeps all m.
//   - 1F1B keeps p-s, and at most m [arXiv 2104.04473, section 2.2.1].
//   - Interleaved keeps 2(p-1-s) + (v-1)p + 1 chunks, and at most m·v. At stage 0 this is
//     p·v·(1 + (p-1)/(p·v)) [Korthikanti et al., arXiv 2205.05198, section 4.2.3].
//   - ZeroBubble keeps p, and at most m [arXiv 2401.10241, table 2]. This counts the
//     activations that only the weight gradient still needs as a whole micro-batch.
func LiveFormula(kind Kind, stage, stages, micro, chunks int) int {
	switch kind {
	case GPipe:
		return micro
	case Interleaved:
		return min(2*(stages-1-stage)+(chunks-1)*stages+1, micro*chunks)
	case ZeroBubble:
		return min(stages, micro)
	}
	return min(stages-stage, micro)
}
