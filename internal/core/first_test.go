package core

import (
	"math/bits"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
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
