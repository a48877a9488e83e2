package nodeset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// retired has the server of a member that has left keep what followed.
func retired(w *world, was, followed *nodeset.Configuration, addr string) *world {
	identity := was.Members[was.Place(addr)].Identity
	w.serve(was, addr).carryOut(w.at(addr),
		nodeset.RecordStep{Kind: nodeset.SetRetire, Identity: identity, Config: followed})
	return w
}

// One node that shows "epoch 99: A alone" changes nothing.
func oneNodeLeads(t assert.TestingT) {
	set := setOf(1, abc...)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	alone := setOf(1, "A", "X")
	alone.Stamp = nodeset.StampOf(99, ballot(99))
	for _, c := range []*nodeset.Configuration{alone, setOf(5, "A", "X")} {
		forged := recordedAt(c, "A")
		w.at("A").forged = &forged
		p.drop(0)
		p.settle(t)
		assert.Equal(t, set.Stamp, p.Stamp())
		assert.Equal(t, "BC", sorted(p.votes()))
		assert.False(t, p.dialled["X"], "no password goes there")
	}
}

// Registers that have one value of different versions prove nothing.
func versionsDiffer(t assert.TestingT) {
	set := setOf(1, abc...)
	learning, _, _ := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	w.put(set, learning, 1, "A").put(set, learning, 3, "B").lose("C")
	p.drop(2)
	assert.Equal(t, set.Stamp, p.settle(t).Stamp(), "C may have had another one of version 2")
	w.put(set, learning, 3, "A").lose("C")
	p.drop(2)
	assert.Equal(t, learning.Stamp, p.settle(t).Stamp())
	assert.Equal(t, "ABCD", sorted(p.votes()))
}

func TestAClientFollowsAMajority(t *testing.T) {
	t.Parallel()
	oneNodeLeads(t)
	versionsDiffer(t)
	set := setOf(1, abc...)
	learning, joint, done := replaced(set)
	follow := func(after func(w *world)) *party {
		w := newWorld().serve(set, abc...)
		p := w.start(abc...).settle(t)
		after(w)
		for i := range nodeset.Seed {
			p.drop(i)
		}
		return p.settle(t)
	}
	p := follow(func(w *world) { w.serve(learning, "A") })
	assert.Equal(t, set.Stamp, p.Stamp(), "one shows it, and it is in no register")
	assert.Equal(t, nodeset.SetAhead, p.fault("A"))
	p = follow(func(w *world) { w.serve(learning, "A").put(set, learning, 1, "A", "B") })
	assert.Equal(t, learning.Stamp, p.Stamp(), "one shows it, and a majority has it in its registers")
	assert.Equal(t, "ABCD", sorted(p.votes()), "those that are behind move, and D gets its place")
	p = follow(func(w *world) { w.serve(learning, "A").put(set, learning, 1, "B", "C") })
	assert.Equal(t, learning.Stamp, p.Stamp())
	p = follow(func(w *world) { w.serve(joint, "A").serve(learning, "B") })
	assert.Equal(t, learning.Stamp, p.Stamp(), "the latest that a majority shows")
	p = follow(func(w *world) { w.serve(done, "A", "B", "D") })
	assert.Equal(t, done.Stamp, p.Stamp())
	assert.Equal(t, "ABD", sorted(p.votes()))
	assert.NotContains(t, p.conns, 2, "C is let go of")
	kept := p.w.at("C").Set()
	assert.Equal(t, set.Stamp, kept.Stamp(), "C had shown nothing of what followed, so it was not used then")

	// The members are all exchanged: C, which is no member, keeps what
	// followed.
	w := newWorld().serve(set, abc...)
	p = w.start(abc...).settle(t)
	p.Decide(learning)
	p.settle(t)
	p.Decide(joint)
	p.settle(t)
	p.Decide(done)
	p.settle(t)
	kept = w.at("C").Set()
	assert.Equal(t, done.Stamp, kept.Stamp())
	_, marked := w.at("C").Incarnation()
	assert.False(t, marked, "it serves nothing")
	g := p.Group()
	assert.Equal(t, protocol.Quorums{Present: 0b1011}, g.Sets)
	assert.Equal(t, uint32(0b0100), g.Absent)
	assert.Equal(t, nodeset.SuccessorName(done.Stamp), g.Successor)
	assert.True(t, g.RestartJoining)
	assert.False(t, p.Group().RestartJoining, "it is said once")
	assert.Zero(t, g.Reassigned)
	assert.Equal(t, 10*time.Second, g.LongestTTL)

	// C is added once more, as a blank server.
	back := change.Begin(done, change.Goal{Add: []nodeset.Member{{Identity: "again", Addr: "C"}}}, ballot(6))
	p.Decide(back)
	assert.Equal(t, "ABCD", sorted(p.settle(t).votes()))
	assert.Equal(t, 4, back.Members[back.Place("C")].Number, "no number is given again before all others")
}

// A member that is removed is met as its client learns that it was.
func TestAMemberShowsThatItHasLeft(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	retired(w, set, done, "C").serve(done, "A", "B", "D")
	for _, i := range []int{0, 2} {
		p.drop(i)
		p.connect(i)
	}
	assert.Equal(t, done.Stamp, p.settle(t).Stamp())
	assert.Equal(t, "ABD", sorted(p.votes()))
}
