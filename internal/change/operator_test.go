package change_test

import (
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file tests when a call of an operator does what, and how it ends.

// call is a call of an operator, at members that answer at once. It runs as a
// coroutine, and stops whenever it sleeps.
type call struct {
	*change.Operator
	t       assert.TestingT
	now     protocol.Time
	c       *nodeset.Configuration
	silent  map[string]bool // members, by address
	refuse  map[string]bool
	disk    change.Persistence
	keeps   change.Persistence // what a node says when it is to write a snapshot
	rounds  int
	saves   int
	pending bool // a try to decide is under way
	asks    bool // such a try stays under way
	stopped bool
	limit   protocol.Time // of Within
	end     change.OperatorEnd
	next    func() (struct{}, bool)
	yield   func(struct{}) bool
}

const nodeTimeout = 500 * time.Millisecond

func newCall(t assert.TestingT, c *nodeset.Configuration, goal change.Goal) *call {
	o := &call{
		t: t, now: 1, c: c, silent: map[string]bool{}, refuse: map[string]bool{},
		disk: change.Persistence{Known: true, Saved: true}, limit: protocol.Never,
		Operator: &change.Operator{Exchange: change.Exchange{Goal: goal}, TTL: 8 * time.Second,
			NodeTimeout: nodeTimeout, Fanout: lease.NewFanout(0)},
	}
	o.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		o.yield = yield
		o.end = o.Run(o)
	})
	return o
}

// step lets the call go on until it sleeps.
func (o *call) step() { o.next() }

func (o *call) Now() protocol.Time { return o.now }

func (o *call) Config() *nodeset.Configuration { return o.c }

func (o *call) Ballot() nodeset.Ballot { return ballot(9) }

func (o *call) Stopped() bool { return o.stopped || o.now >= o.limit }

func (*call) Report(change.OperatorProgress) {}

func (o *call) Snapshot(nodeset.Member, bool) change.Persistence { o.saves++; return o.keeps }

func (o *call) Look(m nodeset.Member, _ nodeset.Stamp, disk bool) change.MemberLook {
	if m.Number == o.c.Members[0].Number {
		o.rounds++
	}
	look := change.MemberLook{CaughtUp: true, Silent: o.silent[m.Addr]}
	if o.refuse[m.Addr] {
		look.Refused = errRefused
	}
	if disk {
		look.Disk = o.disk
	}
	return look
}

var errRefused = errors.New("refuses for good")

// Succeed decides what was proposed, or reads.
func (o *call) Succeed(s *change.Succession) []error {
	for o.pending = o.asks; o.pending && !o.Stopped(); { // a bound of its own ends it
		o.now = min(o.now.Add(nodeTimeout), o.limit)
		o.yield(struct{}{})
	}
	if o.pending {
		return nil
	}
	s.Decide(runIO(true))
	if c, _ := s.Decided(); c != nil {
		o.c = c
	}
	return nil
}

func (o *call) Each(n int, f func(io change.IO, k int)) {
	for k := range n {
		f(o, k)
	}
}

func (o *call) Sleep(until protocol.Time) {
	o.yield(struct{}{})
	if !o.stopped {
		o.now = min(max(o.now, until), o.limit)
	}
}

func (o *call) Within(d time.Duration, f func(io change.IO)) {
	o.stopped, o.limit = false, o.now.Add(d)
	f(o)
}

// runIO gets the lock if it is true, and decides what is asked.
type runIO bool

func (io runIO) Lock(bool, time.Duration) (protocol.Version, bool) {
	return protocol.Version{Ticket: 7}, bool(io)
}

func (runIO) Release() {}

func (runIO) Do(lease.RegisterOp) (lease.RunResult, bool) { return lease.RunResult{}, true }

// until steps until the call has ended or something is so, and returns how long
// that took.
func (o *call) until(is func() bool) time.Duration {
	began := o.now
	for range 10000 {
		if o.end != change.OperatorGoesOn || is() {
			return o.now.Sub(began)
		}
		o.step()
	}
	assert.Fail(o.t, "the call does not end")
	return 0
}

func never() bool { return false }

func (o *call) stage(s nodeset.Stage) func() bool {
	return func() bool { return o.c.Stage == s && o.c.Stamp.Epoch() > 1 }
}

// about reports whether a time is one or the other, but for two rounds.
func about(t assert.TestingT, is, wanted time.Duration, what string) {
	assert.True(t, is >= wanted && is <= wanted+2*nodeTimeout, "%s: %v, wanted %v", what, is, wanted)
}

// bothSetsCount: both sets count for the guard time, as clocks show it.
func bothSetsCount(t assert.TestingT) {
	o := newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	o.until(o.stage(nodeset.Jointly))
	about(t, o.until(o.stage(nodeset.Stable)), exchangeWait, "both sets count")
	o.until(never)
	assert.Equal(t, change.OperatorDone, o.end)
}

// membersAreLookedAt: twice in a node timeout.
func membersAreLookedAt(t assert.TestingT) {
	o := newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	took := o.until(never)
	assert.InDelta(t, float64(took/(nodeTimeout/2)), float64(o.rounds), 3)
}

// newNodeIsGivenUp: it may be silent for a guard time, and longer than a node
// that restarts takes where that is short.
func newNodeIsGivenUp(t assert.TestingT) {
	set := setOf(1, "A", "B", "C")
	set.Now.Guard, set.Next.Guard = time.Second, time.Second
	o := newCall(t, set, entering("D", "C"))
	o.silent["D"] = true
	o.until(o.stage(nodeset.Learning))
	about(t, o.until(o.stage(nodeset.Stable)), 20*nodeTimeout, "D is given up")
	o.until(never)
	assert.Equal(t, change.OperatorUndone, o.end)
	assert.Equal(t, change.WhySilent, o.Why)
	assert.Equal(t, "D", o.Member)
}

// tryIsBounded: by four leases, and its lease by what the guard time covers.
func tryIsBounded(t assert.TestingT) {
	set := setOf(1, "A", "B", "C")
	s := change.NewSuccession(set, nil, time.Second, nodeTimeout)
	assert.Equal(t, 4*time.Second, s.Within)
	assert.Equal(t, time.Second, s.TTL)
	s = change.NewSuccession(set, nil, time.Hour, nodeTimeout*100)
	assert.Equal(t, set.LongestTTL(), s.TTL)
	assert.Equal(t, set.LongestTTL()/4, s.NodeTimeout)
}

// undoingIsBounded: by ten questions.
func undoingIsBounded(t assert.TestingT) {
	o := newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	o.until(o.stage(nodeset.Learning))
	o.asks, o.stopped = true, true
	about(t, o.until(never), 10*nodeTimeout, "it is left")
	assert.Equal(t, change.OperatorLeft, o.end)
	assert.Equal(t, change.WhyStopped, o.Why)
}

func TestConstantsOfAnExchange(t *testing.T) {
	t.Parallel()
	for _, test := range constants {
		test.test(t)
	}
}

// constants are the tests that find each constant to be another one.
var constants = []struct {
	of   string
	test func(assert.TestingT)
}{
	{"ConstExchangeWait", bothSetsCount},
	{"ConstRound", membersAreLookedAt},
	{"ConstPatience", newNodeIsGivenUp},
	{"ConstSuccession", tryIsBounded},
	{"ConstUndo", undoingIsBounded},
	{"ConstFsyncLag", logIsOnDisk},
	{"ConstSaveAgain", snapshotsAreSpaced},
}

// A node that enters and refuses for good has the change undone. So many that
// nothing can be decided end the call.
func TestRefusalsForGood(t *testing.T) {
	t.Parallel()
	o := newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	o.refuse["C"] = true
	o.until(o.stage(nodeset.Learning))
	o.refuse["D"] = true
	o.until(never)
	assert.Equal(t, change.OperatorUndone, o.end)
	assert.Equal(t, change.WhyRefused, o.Why)
	assert.Equal(t, "D", o.Member)

	o = newCall(t, setOf(1, "A", "B", "C"), entering("D", "C"))
	o.refuse["A"], o.refuse["B"] = true, true
	o.until(never)
	assert.Equal(t, change.OperatorBlocked, o.end)
	assert.Equal(t, change.WhyRefused, o.Why)
	assert.Equal(t, uint64(1), o.c.Stamp.Epoch())
}

// A call that is stopped undoes what it has begun, and nothing else.
func TestACallThatIsStopped(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	o := newCall(t, set, entering("D", "C"))
	o.asks = true
	o.until(func() bool { return o.pending })
	o.asks, o.stopped = false, true
	o.until(never)
	assert.Equal(t, change.OperatorUndone, o.end, "the register was read")
	assert.Equal(t, change.WhyStopped, o.Why)

	o = newCall(t, change.Begin(set, entering("D", "C"), ballot(2)), entering("E", "B"))
	o.step()
	o.stopped = true
	o.until(never)
	assert.Equal(t, change.OperatorLeft, o.end, "another client has begun it")

	o = newCall(t, set, entering("D", "C"))
	o.c, o.stopped = nil, true
	o.until(never)
	assert.Equal(t, change.OperatorLeft, o.end, "it knows no set")
}

// To undo alone is done when the set is as it was.
func TestACallThatUndoes(t *testing.T) {
	t.Parallel()
	o := newCall(t, change.Begin(setOf(1, "A", "B", "C"), entering("D", "C"), ballot(2)), change.Goal{})
	o.Undo = true
	o.until(never)
	assert.Equal(t, change.OperatorDone, o.end)
	assert.Equal(t, nodeset.Stable, o.c.Stage)
	assert.Equal(t, []string{"A", "B", "C"}, o.c.Addrs())
}

// Another operator undoes the change before the client has counted on its first
// configuration for a round: the call does not begin it once more.
func TestAChangeThatIsUndoneAtOnce(t *testing.T) {
	o := newCall(t, setOf(1, abc...), change.Goal{Add: []nodeset.Member{{Identity: "d", Addr: "D"}}})
	o.until(o.stage(nodeset.Learning))
	o.c = change.Undo(o.c, ballot(10))
	o.until(o.stage(nodeset.Learning))
	assert.Equal(t, change.OperatorUndone, o.end)
	assert.Equal(t, nodeset.Stable, o.c.Stage)
}
