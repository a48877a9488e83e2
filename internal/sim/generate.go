package sim

import (
	"io"
	"math/rand/v2"
)

// generator makes schedules of one kind.
type generator struct {
	name string
	set  func(r *rand.Rand, s *setting) // may be nil
	plan func(w *world)
}

// run plays g's schedule for a seed. mutate may change the setting.
func run(g generator, seed uint64, mutate func(*setting), trace io.Writer) (*Violation, Stats) {
	return record(g, seed, mutate, trace, nil)
}

// record is run, and records the schedule on a tape if there is one.
func record(g generator, seed uint64, mutate func(*setting), trace io.Writer, to *tape) (*Violation, Stats) {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	s := randomSetting(r)
	if g.set != nil {
		g.set(r, &s)
		s.record = s.record && s.capacity == 1
	}
	s.retention = s.guard // the shortest that the settings allow
	if mutate != nil {
		mutate(&s)
	}
	w := newWorld(s, r, trace)
	if w.tape = to; to != nil {
		to.w = w
	}
	g.plan(w)
	v := w.play()
	w.stats.Schedules = 1
	return v, w.stats
}

// calm: nothing fails, messages are quick.
var calm = generator{
	name: "calm",
	set: func(r *rand.Rand, s *setting) {
		s.clean, s.bootstrap = true, true
		s.tail, s.window = min(s.tail, s.nodeTimeout/8), 0
		s.length /= 2
	},
	plan: (*world).allLoop,
}

// storm: anything fails at any time.
var storm = generator{
	name: "storm",
	plan: func(w *world) {
		w.allLoop()
		w.randomFaults(w.rng.IntN(12))
		if w.rng.IntN(3) == 0 { // a minority stays down
			for _, n := range w.nodes[:w.rng.IntN(w.spare()+1)] {
				n.gone = true
				w.at(w.around(w.length/2), func() {
					if !n.down {
						n.crash()
					}
				})
			}
		}
	},
}

// limping: a minority of the nodes fails in every way and all the time. That
// keeps no claim waiting: the majority serves all claims about as promptly as
// ever.
var limping = generator{
	name: "limping",
	set: func(r *rand.Rand, s *setting) {
		s.nodes = [...]int{3, 3, 4, 5, 5}[r.IntN(5)]
		s.limping, s.bootstrap, s.record = true, true, false
		s.window = 0
		s.tail, s.latePush = min(s.tail, s.nodeTimeout/8), 0
		s.hold, s.think = min(s.hold, s.ttl/10), min(s.think, s.ttl/10)
		s.length = 3*s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		w.lateMessages = false // each would keep the node to itself for another lease
		w.allLoop()
		w.randomFaults(4 + w.rng.IntN(20))
	},
}

// generators are what TestSchedules plays: half of it random, half aimed.
var generators = []generator{
	calm, storm, storm, storm, storm, amnesia, calm, storm, storm, amnesia, storm,
	restart, leap, doubt, nap, doze, midsleep, buffered, overslept, nudge, stale, crossing, cutoff, reborn, permits, comesBack, unlike, killed, settledNodeGoes, severed, fringe, joinTogether, halfway, pushOfOldTicket,
	foreign, shared, limping, overdue, barred, bygone, leaveAtOnce,
	recorded, belated, bareMajority, minority, runFindsMinority, openWaitsForRepair, putForgotten, stretched, raised, resized, shrunk,
	rush, evictions, evictionStorm,
	hasty, congested, brimful, flood, unplugged, leaveRefused, recordsWait, throng, patchy,
	repairBeforeGuardEnds, losesDataAgain, listerLosesData, undecidedName, decidedName, repairWaits, repairTogether, missedResize, rolling,
	wrongClock, polling, poisoned, forged, recordOfTheFuture,
	replica, swapped,
	readers, queueDies,
	manyNames, manyNames, manyNamesCalm, closing, maxHolds,
	recordings, wiped, recordedStorm, exchangeCalm, exchangeStorm, exchangeLeft, exchangeKept, exchangeFalls, exchangeRecords, exchangeAgain, exchangeStale,
	exchangeGivenUp, exchangeDead, exchangeAsleep, exchangeSpares, exchangeRegress, exchangeLate,
	liar, twofold, starts, dies, returns, stops, powerless, slept, shorter,
	localCalm, localStorm, localBusy, localReaders, localTokens, localMistake, localStopped, localRenewed,
}

// generatorOf tells which generator a seed of TestSchedules uses.
func generatorOf(seed uint64) generator { return generators[seed%uint64(len(generators))] }
