package shards

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// tokens are those of m members.
func tokens(r *rand.Rand, m int) (all []uint64) {
	for range m {
		all = append(all, 1838745383838169088+r.Uint64N(1<<40)*1024)
	}
	slices.Sort(all)
	return all
}

// owners returns the token of the member that each shard belongs to.
func owners(members []uint64, n int) (all []uint64) {
	for _, place := range prefer(members, n).assign(len(members), everyMember) {
		all = append(all, members[place])
	}
	return all
}

// Each member has its fair share, and what joins and leaves moves is not much
// more than what must move.
func TestAssign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, 64, 256} {
		for _, m := range []int{1, 2, 3, 5, 16} {
			if m > n {
				continue
			}
			moved, least := 0, 0
			for range 20 {
				members := tokens(r, m+1)
				k := r.IntN(m + 1) // the one that joins
				before := owners(slices.Delete(slices.Clone(members), k, k+1), n)
				after := owners(members, n)
				counts := map[uint64]int{}
				for shard, o := range after {
					counts[o]++
					if o != before[shard] {
						moved++
					}
				}
				for _, o := range members {
					assert.Contains(t, []int{n / (m + 1), (n + m) / (m + 1)}, counts[o])
				}
				least += n / (m + 1)
			}
			t.Logf("%d shards, a member beside %d: %d moved, least %d", n, m, moved/20, least/20)
			assert.LessOrEqual(t, moved, 2*least+20*m, "%d shards, %d members", n, m)
		}
	}
}

// Each shard has one owner, and one that is next in line, unless there is one
// member only.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, m := range []int{1, 2, 3, 8} {
		members := tokens(r, m)
		owned, nexts := make([]int, 40), make([]int, 40)
		for _, me := range members {
			for shard, p := range parts(members, me, 40) {
				switch p {
				case owner:
					owned[shard]++
				case next:
					nexts[shard]++
				}
			}
		}
		for shard := range owned {
			assert.Equal(t, 1, owned[shard])
			assert.Equal(t, min(1, m-1), nexts[shard])
		}
	}
	assert.Equal(t, make([]part, 3), parts(tokens(r, 2), 7, 3), "it is not a member")
}

// The most shards are divided among the most members in less time than lies
// between two looks. Each order of the members was once sorted for each of
// them, which took 20 s, and a replica did nothing else.
func TestPartsOfMany(t *testing.T) {
	members := tokens(rand.New(rand.NewPCG(5, 6)), most)
	counts, began := map[part]int{}, time.Now()
	for _, p := range parts(members, members[0], 10_000) {
		counts[p]++
	}
	took := time.Since(began)
	t.Log(took)
	assert.Equal(t, 100, counts[owner])
	assert.Less(t, took, 10*time.Second,
		"it takes 0.2 s on an idle machine, and some more with the race detector")
}
