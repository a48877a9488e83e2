package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStarved(t *testing.T) {
	work := []Work{{Kind: "rwmutex", Names: []string{"rwmutex-0", "rwmutex-1"}}}
	var good []*Operation
	for _, name := range work[0].Names {
		good = append(good, &Operation{Op: "c0.1.1", Name: name, Phase: AllWell, Call: 1, Begin: 2})
	}
	var stats WaitStats
	assert.Empty(t, starved(work, 1, time.Second, &History{Ops: good}, &stats))
	assert.Equal(t, time.Nanosecond, stats.Calm)
	assert.Len(t, starved(work, 1, time.Second, &History{Ops: good[1:]}, &stats), 1, "it did not get everything")
	late := &Operation{Op: "c0.1.2", Name: "rwmutex-0", Phase: AllWell, Call: 1, Begin: 2 + int64(time.Second)}
	refused := &Operation{Op: "c0.1.3", Name: "rwmutex-0", Phase: AllWell, Call: 1, Failed: 2, Err: "no quorum"}
	assert.Len(t, starved(work, 1, time.Second, &History{Ops: append(good, late, refused)}, &stats), 2)
	unheard := &Operation{Op: "c0.1.4", Name: "rwmutex-0", Phase: UnderFaults, Call: 1, Failed: 2,
		Err: "context deadline exceeded while waiting"}
	assert.Empty(t, starved(work, 1, time.Second, &History{Ops: append(good, unheard)}, &stats),
		"under faults one may wait in vain")
	assert.Equal(t, 1, stats.GaveUp)
}

func TestOvertaken(t *testing.T) {
	ticket := func(us int64) uint64 { return uint64(us) << 10 }
	a := &Operation{Op: "a", Weight: 1, Token: ticket(2), Phase: AllWell, Call: 100, Begin: 200}
	b := &Operation{Op: "b", Weight: 1, Token: ticket(1) + 1, Phase: AllWell, Call: 120, Begin: 150}
	var stats WaitStats
	found := func(capacity int64, ttl time.Duration, ops ...*Operation) int {
		return len(overtaken(ops, capacity, 2000, ttl, ttl/2, &stats))
	}
	assert.Equal(t, 1, found(1, 20, a, b))
	assert.Zero(t, found(1, 60, a, b), "within the bound")
	assert.Zero(t, found(2, 20, a, b), "they do not conflict")
	mate := &Operation{Op: "c", Weight: 1, Token: ticket(1), Phase: AllWell, Call: 90, Begin: 110}
	assert.Zero(t, found(1, 20, mate, a, b), "the claim had asked before")
	before := &Operation{Op: "c0.1.1", Weight: 1, Token: ticket(0), Phase: AfterFaults,
		Call: 90, Begin: 95, End: 115}
	a.Op = "c0.1.2"
	assert.Zero(t, found(1, 20, before, a, b), "its process had the lock until then")
	before.End = 105
	assert.Equal(t, 1, found(1, 20, before, a, b), "that ended long before")
	before.Op, before.End = "c0.2.1", 115
	assert.Equal(t, 1, found(1, 20, before, a, b), "another process had it")
	b.Begin = 250
	assert.Zero(t, found(1, 20, a, b))
	assert.Zero(t, stats.Restarted)
	b.Begin, a.Token = 150, ticket(3)
	assert.Zero(t, found(1, 20, a, b), "it was not settled within a ttl")
	assert.Equal(t, 1, stats.Restarted)
}
