//go:build !race

package gather

const underRace = 1
