package trial

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// What a schedule has in addition to its world: what may fail, what is judged,
// and how long handovers may take.

// Schedule is a world that is played, what fails in it, and what must hold.
type Schedule struct {
	*world.World
	Faults    faults
	Operators operators
	Checks    checks
	Rival     *Rival // may be nil
	Ledger    ledger // of the record
	Permits   number
}

// faults are what may still fail, and what has failed beyond what the nodes and
// the processes know of themselves.
type faults struct {
	w       *Schedule
	missing int // nodes that stay down from the start
}

// operators are those of all processes together.
type operators struct {
	w       *Schedule
	added   int           // members so far
	longest time.Duration // guard time of OtherSettings
}

// checks hold a schedule to what the protocol promises: each name by itself,
// and what is so for all.
type checks struct {
	w  *Schedule
	Of []*checker // by name
}

// checker holds the claims of one name to what the protocol promises.
type checker struct {
	lock    int
	fence   protocol.Ticket // the highest that any node has had, where there are several names
	local   localCheck
	holders []*world.Attempt
	highest []admission      // per weight: the highest ticket that was ever admitted
	entered []*world.Attempt // admitted by the event that is being handled
	free    course.Moment    // since when a waiter could be served and is not
}

type admission struct {
	weight uint64
	ticket protocol.Ticket
	holder *world.Attempt
}

// ledger is what the record has been seen to hold, by all readers together.
type ledger struct {
	void  bool             // more nodes have lost their data than may
	Best  protocol.Version // the newest that any reader got
	Opens []opened
	Puts  []protocol.Version

	reported []protocol.Version // each that a caller got as recorded
	values   map[protocol.Version]string
}

type opened struct{ Run, found protocol.Version }

// number is how many permits there are, and have been.
type number struct {
	limit uint64        // since the last Resize; 0: none yet
	Most  uint64        // that there ever were
	since course.Moment // when a majority knew of the limit
	At    protocol.Ticket
}

// localCheck holds the callers of local queues to what the packages mutex and
// rwmutex promise.
type localCheck struct {
	lock          int    // of the values with this name
	written, read turnOf // with the highest token
}

type turnOf struct {
	token  uint64
	holder string
}

// Rival is another Redlock client on the same name: it sets the redlock key
// where that is free, holds with a majority, and retries at random.
type Rival struct {
	course.Clock
	World *Schedule
	Lease time.Duration
	lossy bool // its messages get lost, or are late
	count int
	Until protocol.Time // of the hold; 0: none
}

// Slowest is how long a hand-over may take when nothing fails.
func (w *Schedule) Slowest() time.Duration {
	if w.Permits.Most > 0 {
		return w.TTL // a claim that is blocked by counting alone gets no push, and asks ever more rarely
	}
	return max(40*(w.Delay+w.Jitter+w.Tail), 50*time.Millisecond)
}

// longestWait is how long a turn of so many other values may take, one after
// the other: one that has begun, hand-overs for a 256th of the ttl, and one
// more turn.
func (w *Schedule) longestWait(values int) time.Duration {
	one := 5 * w.Hold // around draws four and a half at most
	if w.Reading > 0 {
		one *= 2 // and a writer that becomes a reader holds twice
	}
	each := one + w.TTL/256 + one + w.Slowest()
	if w.Jitter > 0 {
		each += w.TTL / 3 // of two pushes the older one may come later: then a beat tells which claims wait
	}
	return time.Duration(values) * each
}
