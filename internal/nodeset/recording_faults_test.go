package nodeset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
)

// votes reports whether a server votes.
func (w *world) votes(addr string) bool {
	has := w.at(addr).Set()
	return has.Phase == nodeset.SetRecorded && w.at(addr).Recovering(w.now) == 0
}

// Clients record a set at once, with an operator's word or without, and die in
// between. Connections break, answers are lost, and one server forgets what it
// did. Once it may have voted, it does not vote before its guard time is over,
// and the clients that are left have all nodes record one set.
func TestRecordingsWithFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		recordWithFaults(t, seed)
	}
}

func recordWithFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	w := blank()
	var clients [3]*party
	var under [3]*recording
	var ready [3]bool
	start := func(i int) {
		list := slices.Clone(abc)
		r.Shuffle(3, func(i, j int) { list[i], list[j] = list[j], list[i] })
		clients[i], under[i], ready[i] = w.start(list...), nil, r.IntN(3) > 0
		if !ready[i] {
			clients[i].Recorder.Want()
		}
	}
	for i := range clients {
		start(i)
		clients[i].settle(t)
	}
	bad, file, voted, forgot := w.at("C"), nodeset.NodeSet{}, false, false
	record := func(i int, word bool) {
		if p := clients[i]; under[i] != nil && len(under[i].Out) > 0 {
			under[i].step()
		} else {
			p.Rejudge()
			under[i] = p.settle(t).recording(word, 0)
		}
	}
	for range 60 {
		i := r.IntN(3)
		p := clients[i]
		switch n := r.IntN(24); {
		case n < 15:
			record(i, ready[i] && r.IntN(4) > 0) // the task of the process has not the word
		case n < 17: // a connection breaks, or does so before the answer
			if x := under[i]; n < 16 && x != nil && len(x.Out) > 0 {
				if s := p.conns[x.Out[0].Node]; s != nil {
					w.carryOut(s, x.Out[0])
				}
				p.drop(x.Out[0].Node)
				x.lose()
			} else if all := p.numbers(); len(all) > 0 {
				p.drop(all[r.IntN(len(all))])
			}
		case n < 20:
			if all := p.numbers(); len(all) > 0 {
				p.connect(all[r.IntN(len(all))])
			}
		case n < 21:
			start(i)
		case n < 22:
			file = bad.Set()
		case !forgot || r.IntN(2) == 0:
			forgot = forgot || voted
			if n == 22 { // FLUSHALL: the run and its connections stay
				w.lose("C")
				break
			}
			w.restart(bad, file)
			for _, p := range clients {
				for i, s := range p.conns {
					if s == bad {
						p.drop(i)
					}
				}
			}
		}
		recorded := 0
		for _, addr := range abc {
			if w.at(addr).Set().Phase == nodeset.SetRecorded {
				recorded++
			}
		}
		voted = voted || recorded > 1 && w.votes("C")
		require.False(t, forgot && w.votes("C"), "seed %d: it has forgotten what it voted for", seed)
	}
	for _, p := range clients { // a node refuses each earlier request
		for i := range p.conns {
			p.drop(i)
		}
		p.act()
	}
	for range 60 { // one at a time
		i := r.IntN(3)
		record(i, ready[i] && r.IntN(4) > 0)
		if x := under[i]; x != nil {
			x.finish()
		}
	}
	for _, addr := range abc {
		has, first := w.at(addr).Set(), w.at("A").Set()
		require.Equal(t, nodeset.SetRecorded, has.Phase, "seed %d: %s", seed, addr)
		require.Equal(t, first.Stamp(), has.Stamp(), "seed %d: %s", seed, addr)
	}
}
