// Package leader elects one process at a time. Candidates wait in order, and
// every process can see who the leader is.
//
//	e := leader.New(q, "scheduler") // the same line in every process
//	err := e.Run(ctx, leader.Callbacks{
//		OnStartedLeading: func(ctx context.Context, lease quorate.Lease) { schedule(ctx, lease.Token()) },
//	})
//
// A term lasts from the moment a candidate wins until it resigns or loses the
// leadership. The number of the term is a fencing token: it increases with
// every term, across all processes. A process is reported as the leader only
// while a majority of the nodes of a [quorate.Quorum] has recorded its term and
// its lease is valid.
//
// No election can stop a process that sleeps through its lease. When it wakes
// up, it still acts as the leader until it checks its context. Pass the term to
// every resource that the leader writes to, and have the resource reject lower
// terms.
//
// # Errors
//
// Methods that take a context return a [*quorate.Error]. Check for its kind
// with [errors.Is]:
//
//   - [quorate.ErrHeld]: another participant is the leader or is ahead in the
//     queue;
//   - [ErrNoLeader]: there is no leader;
//   - [ErrNoCandidate]: no candidate with the given ID is waiting;
//   - [quorate.ErrNoQuorum]: too few nodes answered. A waiting call returns it
//     early if so many nodes refuse permanently that waiting is pointless;
//   - [quorate.ErrLost]: the term ended before the participant resigned;
//   - [quorate.ErrNotHeld]: this participant is not the leader;
//   - [quorate.ErrClosed]: the Quorum has been closed;
//   - [quorate.ErrInvalid]: the name, the ID or the value is invalid (see
//     [New]), or the call cannot be combined with [Election.Run].
//
// If the context ends first, the error matches the context's error and also
// ErrHeld or ErrNoQuorum, depending on what the call was waiting for.
//
// All types in this package are safe for concurrent use.
package leader

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// ErrNoLeader ("no leader") means that according to the nodes there is no
// leader: no process has campaigned yet, or the last leader has resigned, or
// its lease has expired.
var ErrNoLeader = errors.New("no leader")

// An Election is one participant in the election with its name. It can lead,
// wait to lead, or just observe who leads. It must be created with [New] and
// must not be copied. It can be used again after it resigns or loses its term.
//
// Goroutines that share a value lead together. Two values with the same name
// exclude each other just as two processes would. So does a [mutex.Mutex] with
// that name, because it uses the same claim.
//
// [mutex.Mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Mutex
type Election struct {
	_    core.NoCopy
	q    *core.Quorum
	spec *core.Spec
	own  *core.Spec // of the claims with which it campaigns: they show who it is
	reg  *core.Register
	name string
	set  settings
	err  error // of the name, the id or the value; every call tells it

	turn    chan struct{} // full while a goroutine campaigns, or runs
	stepped string        // the last claim that it has stepped back for; written in its turn only

	mu      sync.Mutex
	running bool
	term    *term // won, and neither resigned nor replaced since; it may be lost
}

// term is one time of leading.
type term struct {
	lease  *core.Lease
	since  time.Time
	writes atomic.Uint64 // under the hold: the next one's seq

	drain func() // ends the context of OnStartedLeading; nil without Run
	next  string // the ID chosen by TransferTo under Run; Election.mu guards it until Election.term is another
}

// New returns a participant in the election of the given name.
//
// Options: [WithID], [WithPriority], [WithValue], [WithOneTerm],
// [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal] and [quorate.WithWarning]. The last five default to
// the settings of q. New panics if an option is invalid or nil. Every call reports an invalid name
// (empty, longer than 1024 bytes, or with braces), ID (longer than [MaxID], not
// UTF-8; see also [WithPriority]) or value (longer than [MaxValue], not UTF-8).
func New(q *quorate.Quorum, name string, opts ...quorate.LeaderOption) *Election {
	c := core.CoreOf(q).For(name)
	set := apply(c, opts)
	e := &Election{q: c, name: name, set: set, turn: make(chan struct{}, 1)}
	e.err = set.check()
	spec, err := c.NewSpec(core.Spec{Name: name, Kind: "leader", Weight: 1, Capacity: 1, Set: set.Settings})
	if err != nil {
		e.err = err
		return e
	}
	e.spec, e.own, e.reg = spec, spec, c.Register(spec)
	if text := set.candidate(); text != "" {
		e.own = spec.WithNote(text)
	}
	return e
}

// ID returns the ID that others see while this participant is the leader.
func (e *Election) ID() string {
	e.usable()
	return e.set.id
}

func (e *Election) usable() {
	if e == nil || e.q == nil {
		panic("quorate: the zero leader.Election has no quorum; use leader.New")
	}
}

func (e *Election) check(value string) error {
	if e.err != nil {
		return e.err
	}
	return checkValue(value)
}

// notRunning fails while Run has the election to itself.
func (e *Election) notRunning() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return errRunning
	}
	return nil
}

var errRunning = fmt.Errorf("%w: Run is already running; it resigns when OnStartedLeading returns",
	fault.ErrInvalid)

// Lease returns the term that this participant has won. Its token is the number
// of the term, and its context ends with the term. Lease returns nil if this
// participant has not won or has resigned. If the term is lost, Lease keeps
// returning it until Resign or the next Campaign.
func (e *Election) Lease() quorate.Lease {
	e.usable()
	if t := e.current(); t != nil {
		return t.lease
	}
	return nil
}

// HealthCheck is meant for liveness probes. It returns [quorate.ErrLost] if
// this participant is still acting as the leader more than maxExpired after its
// lease ended, which means that OnStartedLeading has not returned, or that
// neither Resign nor Campaign has been called. Otherwise it returns nil. It
// does not contact the nodes.
func (e *Election) HealthCheck(maxExpired time.Duration) error {
	e.usable()
	t := e.current()
	if t == nil {
		return nil
	}
	expired := time.Since(t.lease.ValidUntil())
	if expired <= max(0, maxExpired) {
		return nil
	}
	return core.WrapError("health check", e.name,
		fmt.Errorf("%w: the term ended %v ago, but OnStartedLeading is still running", fault.ErrLost,
			expired.Round(time.Millisecond)))
}

func (e *Election) current() *term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}

// take takes t from the Election, and reports whether t was its current term.
// Invariant: a term that Campaign or Run has reported is ended only by the
// goroutine that has taken it. So no other goroutine can end it before its
// successor is named.
func (e *Election) take(t *term) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term != t {
		return false
	}
	e.term = nil
	return true
}

func (e *Election) become(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}
