package core

import (
	"math/bits"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/internal/resp"
)

// paced is a Quorum of nodes that answer within so many microseconds.
func paced(us ...int) *Quorum {
	q := &Quorum{set: Defaults()}
	for i, d := range us {
		n := &node{index: i}
		n.pace.took(time.Duration(d) * time.Microsecond)
		q.nodes = append(q.nodes, n)
	}
	return q
}

func (q *Quorum) brief(name string) *Spec { return &Spec{Name: name, Brief: true, Set: &q.set} }

var usualID = protocol.ID{3: 1}

func TestWhoIsAskedFirst(t *testing.T) {
	t.Parallel()
	q := paced(100, 100, 100, 100, 100)
	first := make([]int, 5)
	for i := range 1000 {
		nodes, after := q.later(q.brief(strconv.Itoa(i)), usualID, 0)
		assert.Equal(t, 2, bits.OnesCount32(nodes))
		assert.Equal(t, 3*100*time.Microsecond+patience, after)
		for n := range first {
			if nodes&(1<<n) == 0 {
				first[n]++
			}
		}
	}
	for n, names := range first {
		assert.InDelta(t, 600, names, 100, "node %d is among the first for its share of names", n)
	}
	s := q.brief("a name")
	here, _ := q.later(s, usualID, 0)
	there, _ := paced(90, 110, 95, 120, 100).later(s, usualID, 0)
	assert.Equal(t, here, there, "for a name all clients begin with the same nodes")
}

func TestTheSlowAreNotAmongTheFirst(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		q := paced(30_000, 100, 60_000, 120, 90)
		nodes, after := q.later(q.brief(strconv.Itoa(i)), usualID, 0)
		assert.EqualValues(t, 0b00101, nodes)
		assert.Less(t, after, time.Millisecond)

		// With a majority far away a quarter more is no reason.
		q = paced(1000, 30_000, 31_000, 60_000, 2000)
		nodes, after = q.later(q.brief(strconv.Itoa(i)), usualID, 0)
		assert.NotZero(t, nodes&0b01000)
		assert.Equal(t, q.set.NodeTimeout/4, after, "and the others need not wait for longer")
	}
}

// Who is not well is asked at once and not waited for.
func TestTheUnwellAreNotAmongTheFirst(t *testing.T) {
	t.Parallel()
	q := paced(100, 100, 100, 100, 100)
	nodes, _ := q.later(q.brief("a name"), usualID, 0b01001)
	assert.Zero(t, nodes, "three are left: all of them are needed")
	nodes, _ = q.later(q.brief("a name"), usualID, 0b01000)
	assert.Equal(t, 1, bits.OnesCount32(nodes))
	assert.Zero(t, nodes&0b01000)
	q.nodes[2].recovering.Store(true)
	nodes, _ = q.later(q.brief("a name"), usualID, 0b01000)
	assert.Zero(t, nodes)
	nodes, _ = q.later(q.brief("a name"), usualID, 0b11000)
	assert.Zero(t, nodes, "there is no quorum to be had: all are asked")
}

func TestWhenAllAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	q := paced(100, 100, 100, 100, 100)
	ask := func(s *Spec, id protocol.ID) uint32 {
		nodes, _ := q.later(s, id, 0)
		return nodes
	}
	assert.NotZero(t, ask(q.brief("a name"), usualID))
	assert.Zero(t, ask(q.brief("a name"), protocol.ID{3: everyone}), "every so often")
	long := q.brief("a name")
	long.Brief = false
	assert.Zero(t, ask(long, usualID), "what is usually held for long")
	met := q.brief("a name")
	met.crowd(true)
	assert.Zero(t, ask(met, usualID), "where others are")
	met.crowd(false)
	assert.NotZero(t, ask(met, usualID))
	fixed := q.brief("a name")
	fixed.Set = &Settings{NodeTimeout: time.Second, NoRenewal: true}
	assert.Zero(t, ask(fixed, usualID), "what will not be brought to the others")
	for n, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 7: 3} {
		q = paced(make([]int, n)...)
		assert.Equal(t, want, bits.OnesCount32(ask(q.brief("a name"), usualID)), "of %d nodes", n)
	}
}

// Who finds others at a name asks all nodes the next time, readers among readers
// too, until somebody is alone there.
func TestWhoIsMet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	reader := func(q *Quorum) *Spec {
		s, err := q.NewSpec(Spec{Name: "m", Weight: 1, Capacity: 1 << 30, Brief: true, Set: &q.set})
		require.NoError(t, err)
		return s
	}
	here, there := idle(t, c), idle(t, c)
	one, two := reader(here), reader(there)
	h1, err := here.Acquire(t.Context(), one, false, nil)
	require.NoError(t, err)
	assert.True(t, one.quiet())
	h2, err := there.Acquire(t.Context(), two, false, nil)
	require.NoError(t, err)
	settled := func(h *Hold) { // all its joins have been answered
		require.Eventually(t, func() bool {
			a := (*attempt)(h)
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.claim.Votes(a.q.now()) == c.Len()
		}, 10*time.Second, time.Millisecond)
	}
	settled(h2)
	assert.False(t, two.quiet())
	h1.Release()
	require.NoError(t, h1.Released(t.Context()))
	h2.Release()
	require.NoError(t, h2.Released(t.Context()))
	h2, err = there.Acquire(t.Context(), two, false, nil)
	require.NoError(t, err)
	settled(h2)
	assert.True(t, two.quiet())

	// The nodes that are asked last have not heard of whom the first know.
	a := (*attempt)(h2)
	for _, sum := range []int64{1, 0} {
		r := protocol.Request{Op: protocol.OpJoin, Ticket: a.claim.Ticket(), Sent: there.now()}
		k := calls.Get().(*call)
		k.a, k.req = a, r
		inc := int64(there.incarnations.votes[0].Load())
		k.Reply([]resp.Value{{Int: time.Now().UnixMilli()*8 + 1}, {Int: inc}, {Int: int64(r.Ticket)}, {Int: 1 | 8}, {}, {Int: sum}, {Int: sum}}, nil)
		assert.False(t, two.quiet(), "the sum of others is %d", sum)
	}
}
