package shards

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// preferences are, for each shard, the places of the members in the order in
// which they would have it: by a hash of both (rendezvous hashing).
type preferences [][]int

// prefer returns the preferences of members in rising order. To sort them is
// most of the work of a division, so it is done once for all that are compared.
func prefer(members []uint64, n int) preferences {
	orders, score := make(preferences, n), make([]uint64, len(members))
	for shard := range orders {
		order := make([]int, len(members))
		for i, m := range members {
			order[i], score[i] = i, hash(m, shard)
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
		})
		orders[shard] = order
	}
	return orders
}

// everyMember is the place of no member.
const everyMember = -1

// assign returns the place of the member that each shard belongs to, as if the
// one at the place without were none. Each has as many shards as the others, or
// one more. Members that come and go move few shards of the others.
//
// Invariant: the result depends on nothing but the members, so all that know of
// each other agree.
func (p preferences) assign(members, without int) (owners []int) {
	rest := members
	if without != everyMember {
		rest--
	}
	owners, left, more := make([]int, len(p)), make([]int, members), len(p)%rest
	for i := range left {
		if i == without {
			continue
		}
		left[i] = len(p) / rest
		if more > 0 {
			left[i]++
			more--
		}
	}
	for shard, order := range p {
		for _, i := range order {
			if left[i] > 0 {
				owners[shard] = i
				left[i]--
				break
			}
		}
	}
	return owners
}

// hash is how much a member prefers a shard.
func hash(member uint64, shard int) uint64 {
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(member>>(8*i)), byte(shard>>(8*i))
	}
	_, _ = h.Write(b[:]) // never fails
	return mix(h.Sum64())
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

// parts returns the part of one member in each shard. Members are known by
// their tokens, in rising order. Next in line is the member that would own the
// shard without its owner.
func parts(members []uint64, me uint64, n int) []part {
	all := make([]part, n)
	place, is := slices.BinarySearch(members, me)
	if !is {
		return all
	}
	p, without := prefer(members, n), make([][]int, len(members))
	for shard, o := range p.assign(len(members), everyMember) {
		if o == place {
			all[shard] = owner
			continue
		}
		if without[o] == nil {
			without[o] = p.assign(len(members), o)
		}
		if without[o][shard] == place {
			all[shard] = next
		}
	}
	return all
}
