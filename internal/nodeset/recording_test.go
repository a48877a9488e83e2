package nodeset_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/testkit/findings"
)

// blank is a world of blank servers, of which each client that starts has a
// call that waits.
func blank() *world { return newWorld() }

func (w *world) wanting(list ...string) *party {
	p := w.start(list...)
	p.settle(&findings.Findings{})
	p.Recorder.Want()
	return p
}

// finish carries out a recording.
func (u *recording) finish() nodeset.RecordOutcome {
	for len(u.Out) > 0 {
		u.step()
	}
	return u.Outcome
}

// allRecordIt: two lists with common nodes are not both recorded, ABC by A and
// C, and ABD by B and D.
func allRecordIt(t assert.TestingT) {
	w := blank()
	clients := map[string]*party{"AC": w.wanting(abc...), "BD": w.wanting("A", "B", "D")}
	for by, p := range clients {
		for r := p.recording(false, 0); len(r.Out) > 0; {
			if strings.Contains(by, p.Addr(r.Out[0].Node)) {
				r.step()
			} else {
				r.lose()
			}
		}
	}
	recorded := w.at("A").Set().Phase == nodeset.SetRecorded && w.at("B").Set().Phase == nodeset.SetRecorded
	assert.False(t, recorded, "A and B are of two sets")
}

// acceptedIsProposed: a client that dies after all have accepted has recorded
// the set, and the next one records no other one.
func acceptedIsProposed(t assert.TestingT) {
	w := blank()
	a, b := w.wanting(abc...), w.wanting("C", "B", "A")
	first := a.recording(false, nodeset.SetCommit)
	r := b.recording(false, nodeset.SetRetire)
	assert.Equal(t, nodeset.RecordDone, r.Outcome)
	assert.Equal(t, first.Config.Stamp, r.Config.Stamp)
}

// supersededGivesUp: a recording that is superseded has no node accept
// anything.
func supersededGivesUp(t assert.TestingT) {
	w := blank()
	a, b := w.wanting(abc...), w.wanting(abc...)
	ra := a.recording(false, 0)
	rb := b.recording(false, nodeset.SetAccept) // its ballot is the higher one
	for len(ra.Out) > 0 && ra.Out[0].Kind == nodeset.SetPromise {
		ra.step()
	}
	assert.Equal(t, nodeset.RecordSuperseded, ra.Outcome)
	assert.Empty(t, ra.Out)
	assert.Equal(t, nodeset.RecordDone, rb.finish())
}

// voidIsOver: what a node has accepted of another list is void once a node of
// that list is of a set.
func voidIsOver(t assert.TestingT) {
	set := setOf(1, abc...)
	w := blank().serve(set, "A")
	w.keep(w.at("B"), acceptedAt(setOf(2, "A", "B"), "B", 2))
	p := w.start(abc...)
	p.settle(&findings.Findings{})
	if assert.True(t, p.Recorder.Due(), "fewer than a majority remember the set") {
		assert.Equal(t, nodeset.RecordDone, p.recording(false, 0).finish())
	}
}

func TestRecording(t *testing.T) {
	t.Parallel()
	for _, test := range []func(assert.TestingT){allRecordIt, acceptedIsProposed,
		supersededGivesUp, voidIsOver} {
		test(t)
	}
	for _, ready := range []bool{false, true} {
		w := blank()
		p := w.start(abc...).settle(t)
		assert.False(t, p.Recorder.Due(), "an operator may declare the nodes new")
		if !ready {
			p.Recorder.Want()
		}
		assert.Equal(t, nodeset.RecordDone, p.recording(ready, 0).finish())
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		assert.Equal(t, ready, w.at("A").Recovering(w.now) == 0, "the operator's word ends the guard time")
		assert.False(t, p.Recorder.Due())
	}
	w := blank()
	w.at("C").up = false
	assert.False(t, w.wanting(abc...).Recorder.Due(), "C may know a set")

	for _, run := range []string{"", "run of A"} {
		w = blank()
		w.at("A").run = run
		w.servers["B"] = w.at("A")
		r := w.wanting(abc...).recording(false, nodeset.SetRetire)
		assert.Equal(t, nodeset.RecordTwice, r.Outcome)
		assert.Equal(t, []int{nodeset.Seed + 1, nodeset.Seed}, []int{r.Node, r.Other})
		if run != "" { // else it is found once they have accepted
			p := w.wanting("A", "C", "D")
			assert.Equal(t, nodeset.RecordDone, p.recording(false, 0).finish(), "they take another list")
		}
	}

	w = blank()
	p := w.wanting(abc...)
	r := p.recording(false, 0)
	w.serve(setOf(2, "C", "D"), "C")
	assert.Equal(t, nodeset.RecordOther, r.finish())
	assert.Equal(t, nodeset.Seed+2, r.Node)
}

// Two clients of one list start together, and one of them is the first to record
// it. The other one has not met another list.
func TestTheSameListIsNoOtherList(t *testing.T) {
	t.Parallel()
	w := blank()
	a, b := w.wanting(abc...), w.wanting("C", "B", "A")
	first, late := a.recording(false, 0), b.recording(false, 0) // whose ballot is the higher one
	require.Equal(t, nodeset.RecordDone, first.finish())
	assert.Equal(t, nodeset.RecordSuperseded, late.finish())
	b.Rejudge()
	assert.Equal(t, "ABC", sorted(b.settle(t).votes()))
}

// Two clients declare the nodes brand-new at the same time, as replicas of a
// service do that start together. Whichever comes first at which node, a
// majority votes at once. The last node may be taken for a blank one, as its
// commit is under way: then it begins its guard time.
func TestTwoDeclareTheNodesNew(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := blank()
		clients := []*party{w.start(abc...).settle(t), w.start(abc...).settle(t)}
		under := []*recording{clients[0].recording(true, 0), clients[1].recording(true, 0)}
		for steps := 0; under[0] != nil || under[1] != nil; steps++ {
			require.Less(t, steps, 1000)
			i := r.IntN(2)
			switch p := clients[i]; {
			case under[i] == nil:
			case len(under[i].Out) > 0:
				under[i].step()
			default: // it is over
				if under[i].Outcome != nodeset.RecordDone {
					p.Rejudge()
				}
				under[i] = p.settle(&findings.Findings{}).recording(true, 0)
			}
		}
		votes := 0
		for _, addr := range abc {
			assert.Equal(t, nodeset.SetRecorded, w.at(addr).Set().Phase, "seed %d: %s", seed, addr)
			if w.at(addr).Recovering(w.now) == 0 {
				votes++
			}
		}
		assert.GreaterOrEqual(t, votes, 2, "seed %d", seed)
	}
}

// An operator's word is given on for a node that has kept all since it promised
// its part, and no other. A node that may have voted by the word that another
// client had, and has forgotten it, begins a guard time.
func TestTheOperatorsWordIsNotForANodeThatForgets(t *testing.T) {
	t.Parallel()
	const c = nodeset.Seed + 2
	for what, forgets := range map[string]func(w *world, a, b *party) *recording{
		"it comes back with a file from before the commit, whose answer was lost": func(w *world, a, b *party) *recording {
			r := a.recording(true, nodeset.SetCommit)
			file := w.at("C").Set()
			w.carryOut(w.at("C"), r.Out[2])
			r.Out = r.Out[:2]
			r.finish()
			a.drop(c)
			w.restart(w.at("C"), file)
			a.settle(t)
			return r
		},
		"it comes back with a file from before it has accepted": func(w *world, a, b *party) *recording {
			first := a.recording(true, nodeset.SetCommit)
			r := b.recording(true, nodeset.SetAccept)
			file := w.at("C").Set()
			first.finish()
			b.drop(c)
			w.restart(w.at("C"), file)
			b.connect(c)
			return r
		},
		"it comes back with a file from before it has voted, and another node's answer is late": func(w *world, a, b *party) *recording {
			r := b.recording(true, nodeset.SetAccept)
			var answers []nodeset.NodeSet
			steps := r.Out
			for _, x := range steps {
				answers = append(answers, w.carryOut(b.conns[x.Node], x))
			}
			file := w.at("C").Set()
			a.recording(true, 0).finish()
			b.drop(c)
			w.restart(w.at("C"), file)
			b.connect(c)
			for i, x := range steps {
				r.answer(x, answers[i])
			}
			return r
		},
		"it loses its data between its promise and what it accepts": func(w *world, a, b *party) *recording {
			first := a.recording(true, nodeset.SetCommit)
			r := b.recording(true, nodeset.SetAccept)
			first.finish()
			w.lose("C")
			return r
		},
		"it loses its data before its promise, the last one": func(w *world, a, b *party) *recording {
			first := a.recording(true, nodeset.SetCommit)
			r := b.recording(true, 0)
			r.step()
			r.step()
			first.finish()
			w.lose("C")
			return r
		},
	} {
		w := blank()
		a, b := w.start(abc...).settle(t), w.start(abc...).settle(t)
		r := forgets(w, a, b)
		r.finish()
		b.Rejudge()
		a.Rejudge()
		a.settle(t)
		b.settle(t)
		assert.False(t, w.votes("C"), what)
		assert.True(t, w.votes("A") && w.votes("B"), what)
	}
}

// Nothing is recorded while a node is away, or is to be judged again: it may
// know a set, or a later configuration.
func TestNothingIsRecordedBeforeAllAreJudged(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)
	p := blank().wanting(abc...)
	require.True(t, p.Recorder.Due())
	p.Again(nodeset.Seed)
	assert.False(t, p.Recorder.Due(), "a blank node")

	forgotten := func() *party {
		w := blank().serve(set, abc...)
		p := w.start(abc...).settle(t)
		w.lose("A", "B")
		p.drop(0)
		p.drop(1)
		p.settle(t)
		require.True(t, p.Recorder.Due())
		return p
	}
	p = forgotten()
	p.Again(2)
	assert.False(t, p.Recorder.Due(), "the member that remembers")
	p = forgotten()
	p.drop(2)
	assert.False(t, p.Recorder.Due(), "the member that remembers is away")
	p = forgotten()
	assert.Nil(t, p.recording(true, 0), "an operator's word is of new nodes")

	w := blank().serve(set, abc...)
	p = w.start("A", "B", "C", "D").settle(t)
	w.serve(done, "A").lose("B", "C").at("D").up = false
	for i := range 3 {
		p.drop(i)
	}
	assert.False(t, p.settle(t).Recorder.Due(), "D is a member of what A remembers")
	w.at("D").up = true
	require.True(t, p.settle(t).Recorder.Due())
	p.drop(2)
	assert.False(t, p.Recorder.Due(), "C was a member, and may know what followed")

	w = blank().serve(set, "A", "B")
	p = w.start(abc...)
	for i := range abc {
		p.connect(nodeset.Seed + i)
	}
	for i := range abc {
		p.connect(i)
	}
	assert.Equal(t, nodeset.SetLost, p.Verdict(2).Fault)
	assert.False(t, p.Recorder.Due(), "most remember it: they say so, and C gets its place")
}

// Where all have forgotten their set another one is recorded. Leases of before
// may run yet.
func TestANewSetCoversTheLeasesOfTheForgottenOne(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	w := blank().serve(set, abc...)
	p := w.start(abc...).settle(t)
	w.lose(abc...)
	for i := range 3 {
		p.drop(i)
	}
	p.settle(t).Recorder.Want()
	r := p.recording(false, nodeset.SetRetire)
	require.Equal(t, nodeset.RecordDone, r.Outcome)
	assert.Equal(t, set.Now, r.Config.Now)
}

// What others disturb is tried ever more rarely: all connections of a list go on
// for longer than a recording takes, and of two clients one begins alone.
func TestPausesDouble(t *testing.T) {
	const nodeTimeout = 80 * time.Millisecond
	for _, of := range []struct {
		next    func(was, nodeTimeout time.Duration) time.Duration
		longest time.Duration
	}{{nodeset.JudgePause, 5 * nodeTimeout}, {nodeset.RecordPause, 32 * nodeTimeout}} {
		pause := of.next(0, nodeTimeout)
		assert.Equal(t, nodeTimeout/4, pause)
		for pause < of.longest {
			was := pause
			pause = of.next(was, nodeTimeout)
			assert.Equal(t, min(2*was, of.longest), pause)
		}
		assert.Equal(t, of.longest, of.next(pause, nodeTimeout))
	}
}
