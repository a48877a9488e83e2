package shards

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// assign returns which member each of n shards belongs to. Members are known by
// their tokens, in rising order. Each gets n/len(members) shards, or one more.
// Members that come and go move few shards of the others.
//
// Invariant: the result depends on nothing but the arguments, so all members
// that know of each other agree.
func assign(members []uint64, n int) []uint64 {
	owners := make([]uint64, n)
	if len(members) == 0 {
		return owners
	}
	left := map[uint64]int{}
	for i, m := range members {
		left[m] = n / len(members)
		if i < n%len(members) {
			left[m]++
		}
	}
	for shard := range owners {
		for _, m := range preferred(members, shard) {
			if left[m] > 0 {
				owners[shard] = m
				left[m]--
				break
			}
		}
	}
	return owners
}

// preferred returns the members in the order in which they would have a shard:
// by a hash of both (rendezvous hashing).
func preferred(members []uint64, shard int) []uint64 {
	score := make(map[uint64]uint64, len(members))
	for _, m := range members {
		h := fnv.New64a()
		var b [16]byte
		for i := range 8 {
			b[i], b[8+i] = byte(m>>(8*i)), byte(shard>>(8*i))
		}
		_, _ = h.Write(b[:]) // never fails
		score[m] = mix(h.Sum64())
	}
	order := slices.Clone(members)
	slices.SortFunc(order, func(a, b uint64) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return order
}

// mix spreads what differs in few bits over all of them.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// part is what a member does about a shard.
type part int

const (
	none  part = iota
	next       // it is the next in line: it takes the shard over when its owner dies
	owner      // the shard is its own
)

// parts returns the part of one member in each shard. Next in line is the
// member that would own the shard without its owner.
func parts(members []uint64, me uint64, n int) []part {
	all := make([]part, n)
	if !slices.Contains(members, me) {
		return all
	}
	owners := assign(members, n)
	without := map[uint64][]uint64{}
	for shard, o := range owners {
		if o == me {
			all[shard] = owner
			continue
		}
		if without[o] == nil {
			rest := slices.DeleteFunc(slices.Clone(members), func(m uint64) bool { return m == o })
			without[o] = assign(rest, n)
		}
		if without[o][shard] == me {
			all[shard] = next
		}
	}
	return all
}
