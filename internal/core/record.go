package core

// The operations on the record of a name, as primitives see them: read, open,
// put, erase. Each is one lease.RegisterOp that a registerCall
// (register_call.go) drives.
// Invariant: a value is returned as recorded only if a majority has it.

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// Record is what a majority of the nodes stores for a name in addition to its
// claims.
type Record struct {
	Exists bool          // something is recorded, and was not erased since
	Value  []byte        // what
	Token  uint64        // of the hold that recorded or erased it; 0 when none ever did
	Seq    uint64        // and which of that hold's writes it was
	Left   time.Duration // of that hold's lease, as a majority sees it; 0 when it has ended

	// Undecided: a minority has a value, and a run has begun since that may not
	// have found it. That run or the next one decides. Exists is false.
	Undecided bool

	version protocol.Version
}

// record returns what was found. Called when the registerCall is decided.
func (i *registerCall) record() Record {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.in.Newest()
	if i.in.Outcome() == lease.Inconclusive || s.Version == (protocol.Version{}) {
		return Record{Undecided: i.in.Outcome() == lease.Inconclusive}
	}
	left, _ := i.in.Left()
	return Record{
		Exists: !s.Erased, Value: s.Value, Token: uint64(s.Ticket) * MaxPasses, Seq: max(s.Seq, 1) - 1,
		Left: left, version: s.Version,
	}
}

// Read returns what a majority has agreed on. What only some of the nodes have
// is brought to the others first: see lease.Run.Read. If a majority agrees, it
// takes one round trip and writes nothing.
func (r *Register) Read(ctx context.Context) (Record, error) {
	if err := r.q.Members.Await(ctx, false); err != nil {
		return Record{}, err
	}
	run := r.decision()
	return r.run(ctx, none, func(io lease.RunIO) bool {
		return run.Read(io, lease.RegisterOp{Op: protocol.OpRead, Alive: true})
	})
}

// decide reports whether what the last run has left open is decided.
func (r *Register) decide(ctx context.Context) bool {
	_, err := r.run(ctx, none, r.decision().Decide)
	return err == nil
}

// decision is a Run that decides what the last one has left open.
func (r *Register) decision() *lease.Run {
	within := repair.DecideWithin(r.spec.Set.NodeTimeout, r.spec.Set.TTL, r.q.Driver.Client.Fanout().QuorumTrip(0))
	return &lease.Run{Try: true, Within: within}
}

// runIO is the lease.RunIO of a Run. It serves one Run.
type runIO struct {
	r     *Register
	ctx   context.Context
	hold  Hold            // or none
	bound context.Context // of what is asked under the hold
	own   func()          // releases a hold that Lock has got; nil: none
	rec   Record          // what was read, or found by an open
	err   error           // of the last question
}

func (io *runIO) Lock(try bool, within time.Duration) (v protocol.Version, held bool) {
	lock := io.r.spec.WithWeight(1)
	lock.Capacity = 1
	bound, cancel := context.WithTimeout(io.ctx, within)
	h, err := io.r.q.Acquire(bound, lock, try, nil)
	if io.err = err; err != nil {
		cancel()
		return v, false
	}
	io.hold, io.bound, io.own = h, bound, func() {
		h.Release()
		cancel()
	}
	return h.version(0), true
}

func (io *runIO) Release() {
	if io.own != nil {
		io.own()
		io.hold, io.bound, io.own = none, io.ctx, nil
	}
}

func (io *runIO) Do(op lease.RegisterOp) (found lease.RunResult, ok bool) {
	i := io.r.start(&registerCall{hold: io.hold, in: op})
	if io.err = i.wait(io.bound); io.err == nil && op.Op != protocol.OpPut {
		io.rec = i.record()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.in.Result(), io.err == nil
}

// run has a Run work on the record, under h if that is not none. It returns what
// was read, or found by an open.
func (r *Register) run(ctx context.Context, h Hold, work func(io lease.RunIO) bool) (Record, error) {
	io := &runIO{r: r, ctx: ctx, hold: h, bound: ctx}
	if work(io) {
		io.err = nil
	}
	return io.rec, io.err
}

// read carries out one read, without a Run. If watch is not zero, the nodes
// also note the watch that it names.
func (r *Register) read(ctx context.Context, in lease.RegisterOp, watch protocol.Terms) (Record, error) {
	if err := r.q.Members.Await(ctx, false); err != nil {
		return Record{}, err
	}
	i := r.start(&registerCall{terms: watch, in: in})
	if err := i.wait(ctx); err != nil {
		return Record{}, err
	}
	return i.record(), nil
}

// version returns the version of the seq-th write of the hold. Number 0 is for
// what Open records again: what the hold itself records must be later than
// that.
func (h Hold) version(seq uint64) protocol.Version {
	return protocol.Version{Ticket: h.a.claim.State.Ticket(), ID: h.a.claim.State.ID, Seq: seq + 1}
}

// Open begins a run under the hold: from here on no earlier hold can record
// anything. It returns what has been recorded before; a record on any node
// counts, and is recorded again (lease.Run.Open). It fails with ErrLost
// when the hold ends before, or a later one has begun a run.
func (r *Register) Open(ctx context.Context, h Hold) (Record, error) {
	if r.q.IsClosed() {
		return Record{}, &fault.Failure{Err: fault.ErrClosed}
	}
	return r.run(ctx, h, func(io lease.RunIO) bool { return new(lease.Run).Open(io, h.version(0)) })
}

// Put records value under the ticket of the hold and waits until a majority has
// it. It tries until ctx ends, even if the hold is lost in the meantime. It
// fails with ErrLost if a later hold has begun a run, if no node can take the
// value any more, or half an hour after the loss. Of the writes of one hold the
// one with the highest seq stays. keep is how long the nodes keep the value; 0
// means permanently.
func (r *Register) Put(ctx context.Context, h Hold, seq uint64, value []byte, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq), Value: value, Keep: keep}})
}

// PutFirst is Put for the first write of a run that was not opened. It also
// fails with ErrLost if too few nodes vote for the hold and another node
// refuses it.
func (r *Register) PutFirst(ctx context.Context, h Hold, value []byte) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(0), Value: value}, First: true})
}

// Erase is like Put, but records that there is no value.
func (r *Register) Erase(ctx context.Context, h Hold, seq uint64, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep}})
}

// begin starts a put and waits until it is decided.
func (r *Register) begin(ctx context.Context, h Hold, in lease.RegisterOp) error {
	if r.q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	in.Op = protocol.OpPut
	return r.start(&registerCall{hold: h, in: in}).wait(ctx)
}

// Retire erases and releases the hold together, without waiting for the nodes.
// Each node erases before it gives the vote to the next claim, because both
// requests go to it in this order on one connection, even if they wait for room
// (ClassOfRecord).
func (r *Register) Retire(h Hold, seq uint64, keep time.Duration) {
	if h.Valid() && !r.q.IsClosed() {
		s := protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep}
		r.start(&registerCall{in: lease.RegisterOp{Op: protocol.OpPut, Stored: s}}).end(nil)
	}
	h.Release()
}

// number returns the register that stores how many permits a semaphore has.
// NewSpec has already accepted the name.
func (q *operations) number(name string, set *setup.Settings) *Register {
	lock, _ := q.NewSpec(Spec{Name: name, side: script.Number, Weight: 1, Capacity: 1, Set: set})
	return q.Register(lock)
}
