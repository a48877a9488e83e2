package shards

import (
	"math/rand/v2"
	"slices"
	"testing"

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
				before := assign(slices.Delete(slices.Clone(members), k, k+1), n)
				after := assign(members, n)
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
	assert.Equal(t, []uint64{0, 0}, assign(nil, 2))
}

// Each shard has one owner, and one that is next in line, unless there is one
// member only.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, m := range []int{1, 2, 3, 8} {
		members := tokens(r, m)
		owners, nexts := make([]int, 40), make([]int, 40)
		for _, me := range members {
			for shard, p := range parts(members, me, 40) {
				switch p {
				case owner:
					owners[shard]++
				case next:
					nexts[shard]++
				}
			}
		}
		for shard := range owners {
			assert.Equal(t, 1, owners[shard])
			assert.Equal(t, min(1, m-1), nexts[shard])
		}
	}
	assert.Equal(t, make([]part, 3), parts(tokens(r, 2), 7, 3), "it is not a member")
}
