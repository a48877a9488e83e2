package sim

import (
	"io"
	"math/rand/v2"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
)

// run plays g's schedule for a seed. mutate may change the setting.
func run(g generator, seed uint64, mutate func(*course.Setting),
	trace io.Writer) (*course.Violation, course.Stats) {
	return record(g, seed, mutate, trace, nil)
}

// record is run, and records the schedule on a tape if there is one.
func record(g generator, seed uint64, mutate func(*course.Setting), trace io.Writer,
	to *course.Tape) (*course.Violation, course.Stats) {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	s := course.RandomSetting(r)
	if g.set != nil {
		g.set(r, &s)
		s.Record = s.Record && s.Capacity == 1
	}
	s.Retention = s.Guard // the shortest that the settings allow
	if mutate != nil {
		mutate(&s)
	}
	w := trial.NewSchedule(s, r, trace)
	if to != nil {
		w.RecordOn(to)
	}
	g.plan(w)
	v := w.Play()
	w.Stats.Schedules = 1
	return v, w.Stats
}

// generators are what TestSchedules plays: half of it random, half aimed.
var generators = []generator{
	calm, storm, storm, storm, storm, amnesia, calm, storm, storm, amnesia, storm,
	restart, doubt, storm, nudge, crossing, cutoff, reborn, storm, unlike, killed, settledNodeGoes,
	shared, limping, bygone, leaveAtOnce,
	recorded, belated, bareMajority, runFindsMinority, openWaitsForRepair, stretched, resized, shrunk,
	rush, evictions, evictionStorm,
	flood, unplugged, storm,
	rolling, wrongClock, polling, forged, recordOfTheFuture,
	swapped, calm,
	manyNames, manyNames, manyNamesCalm, closing, maxHolds,
	recordings, wiped, recordedStorm, exchangeCalm, exchangeStorm, exchangeFalls, exchangeRecords, exchangeAgain,
	exchangeGivenUp, exchangeDead, exchangeAsleep, exchangeSpares, exchangeRegress, exchangeLate,
	settingsChange, settingsRevert, settingsDiffer,
	liar, twofold, starts, dies, returns, stops, powerless, slept, shorter, addresses,
	localCalm, localStorm, localCalm, localStorm, localStorm,
}

// generatorOf tells which generator a seed of TestSchedules uses.
func generatorOf(seed uint64) generator { return generators[seed%uint64(len(generators))] }
