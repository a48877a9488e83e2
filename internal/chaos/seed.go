package main

import (
	"hash/fnv"
	"math/rand/v2"
)

// hash makes a number of some words: one seed serves many sources of chance,
// each with its own name.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// chance is the source of chance of the given name.
func chance(seed uint64, words ...string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(words...)))
}
