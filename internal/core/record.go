package core

// This file owns the operations on the record of a name, as primitives see
// them: read, open, put, erase, and the wait for a claim that a record may make
// needless. Each is one lease.RegisterOp that a registerCall
// (register_call.go) drives. The number of a semaphore's permits is such a
// record, beside the semaphore's name, and written under a lock of its own: a
// full semaphore admits no claim, so a Resize under a claim of the semaphore
// would wait for the holders. The nodes read it with every request of the
// semaphore's claims, and return it with every answer.
// Invariant: a value is returned as recorded only if a majority has it.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
)

// Record is what a majority of the nodes keeps of a name beside its claims.
type Record struct {
	Exists bool          // something is recorded, and was not erased since
	Value  []byte        // what
	Token  uint64        // of the hold that recorded or erased it; 0 when none ever did
	Seq    uint64        // and which of that hold's writes it was
	Left   time.Duration // of that hold's lease, as a majority sees it; 0 when it has ended

	// Undecided: a minority has something, and a run has begun since that may
	// have found nothing. It will decide, or the next one. Exists is false.
	Undecided bool

	version protocol.Version
}

// Register is the record of one name. Its rules are in lease/register.go.
// It has no state of its own, so it is safe for concurrent use.
type Register struct {
	q    *Quorum
	spec *Spec
}

// Register returns the record of s's name.
func (q *Quorum) Register(s *Spec) *Register { return &Register{q: q, spec: s} }

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
		Exists: !s.Erased, Value: s.Value, Token: uint64(s.Ticket) * MaxPasses, Seq: max(s.Seq, 1) - 1, Left: left, version: s.Version,
	}
}

// Read returns what a majority has agreed on. What only some of the nodes have
// is brought to the others first: see lease.NewRead. It takes one round trip
// where a majority agrees, and writes nothing then.
func (r *Register) Read(ctx context.Context) (Record, error) {
	if err := r.await(ctx); err != nil {
		return Record{}, err
	}
	return r.run(ctx, lease.NewRead(lease.RegisterOp{Op: protocol.OpRead, Alive: true}, r.decideWithin(), rule.Protocol()), nil)
}

// decide reports whether what the last run has left open is decided.
func (r *Register) decide(ctx context.Context) bool {
	run := lease.NewDecision(r.decideWithin())
	_, err := r.run(ctx, run, nil)
	return err == nil && run.OK()
}

func (r *Register) decideWithin() time.Duration {
	return repair.DecideWithin(r.spec.Set.NodeTimeout, r.spec.Set.TTL, r.q.Driver.Client.Fanout().Trip(0))
}

// run carries out the steps of a Run under h, or under holds of its own if h is
// nil. It returns what was read, or found by an open.
func (r *Register) run(ctx context.Context, run *lease.Run, h *Hold) (rec Record, err error) {
	lock := r.spec.WithWeight(1)
	lock.Capacity = 1
	bound, release := ctx, func() {}
	defer func() { release() }()
	for {
		switch run.Step() {
		case lease.RunLock:
			var cancel context.CancelFunc
			bound, cancel = context.WithTimeout(ctx, run.Within)
			if h, err = r.q.Acquire(bound, lock, run.Try, nil); err != nil {
				cancel()
				run.Locked(protocol.Version{}, false)
				continue
			}
			own := h
			release = func() {
				own.Release()
				cancel()
			}
			run.Locked(h.version(0), true)
			continue
		case lease.RunRead:
			release()
			bound, release, h = ctx, func() {}, nil
		case lease.RunOver:
			if run.OK() {
				err = nil
			}
			return rec, err
		}
		i := r.start(&registerCall{hold: h, in: run.Op})
		if err = i.wait(bound); err == nil && run.Op.Op != protocol.OpPut {
			rec = i.record()
		}
		i.mu.Lock()
		run.Recorded(&i.in, err == nil)
		i.mu.Unlock()
	}
}

// await waits until there is a set to ask.
func (r *Register) await(ctx context.Context) error {
	if r.q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	return r.q.Members.Await(ctx, false)
}

func (r *Register) read(ctx context.Context, in lease.RegisterOp, watch protocol.Terms) (Record, error) {
	if err := r.await(ctx); err != nil {
		return Record{}, err
	}
	i := r.start(&registerCall{terms: watch, in: in})
	if err := i.wait(ctx); err != nil {
		return Record{}, err
	}
	return i.record(), nil
}

// version is the hold's seq-th write. Number 0 is what Open records again: what
// the hold itself records must be later than that.
func (h *Hold) version(seq uint64) protocol.Version {
	return protocol.Version{Ticket: h.claim.Ticket(), ID: h.claim.ID, Seq: seq + 1}
}

// Open begins a run under the hold: from here on no earlier hold can record
// anything. It returns what has been recorded before; a record on any node
// counts, and is recorded again (lease.NewOpening). It fails with ErrLost
// when the hold ends before, or a later one has begun a run.
func (r *Register) Open(ctx context.Context, h *Hold) (Record, error) {
	if r.q.IsClosed() {
		return Record{}, &fault.Failure{Err: fault.ErrClosed}
	}
	rec, err := r.run(ctx, lease.NewOpening(h.version(0)), h)
	if err != nil {
		return Record{}, err
	}
	return rec, nil
}

// Put records value under the hold's ticket and waits until a majority has it.
// It tries for as long as ctx lasts, also when the hold is lost meanwhile; it
// fails with ErrLost when a later hold has begun a run, when no node can take
// it any more, or half an hour after the loss. Of one hold's writes the one
// with the highest seq stays. keep is how long the nodes remember; 0: without
// end.
func (r *Register) Put(ctx context.Context, h *Hold, seq uint64, value []byte, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq), Value: value, Keep: keep}})
}

// PutFirst is Put of a run's first write where no Open came before. It fails
// with ErrLost also where too few nodes come to vote for the hold, and another
// one refuses it.
func (r *Register) PutFirst(ctx context.Context, h *Hold, value []byte) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(0), Value: value}, First: true})
}

// Erase is Put of nothing.
func (r *Register) Erase(ctx context.Context, h *Hold, seq uint64, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep}})
}

func (r *Register) begin(ctx context.Context, h *Hold, in lease.RegisterOp) error {
	if r.q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	in.Op = protocol.OpPut
	return r.start(&registerCall{hold: h, in: in}).wait(ctx)
}

// Retire erases and releases the hold in one go, without waiting for the nodes:
// each of them erases before it gives the vote to the next, for the two go to
// it in this order on one connection. The put is given up at once, with the
// requests already queued: its caller has no use for the outcome. ClassOfRecord
// puts an erasure into the class of the leaves, so it is before the leave also
// where both wait for room.
func (r *Register) Retire(h *Hold, seq uint64, keep time.Duration) {
	if h.Valid() && !r.q.IsClosed() {
		s := protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep}
		r.start(&registerCall{in: lease.RegisterOp{Op: protocol.OpPut, Stored: s}}).end(nil)
	}
	h.Release()
}

// TurnUnless waits for a claim, or until what is recorded makes it needless:
// then l and err are nil. Without the latter a thousand waiters would get their
// turns one after the other, with nothing to do. enough is called from another
// goroutine.
// Invariant: the caller's goroutine waits for the claim, because there the
// tracer is called. In a goroutine of its own a panic of the tracer would end
// the process.
func (r *Register) TurnUnless(ctx context.Context, enough func(Record) bool) (l *Lease, found Record, err error) {
	watch := r.Watch()
	defer watch.Close()
	ctx, cancel := context.WithCancel(ctx)
	needless := false
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		found, needless = watch.await(ctx, enough)
		cancel()
	}()
	stop := func() {
		cancel()
		<-watched
	}
	defer stop() // also when the tracer panics
	l, err = r.q.AcquireLease(ctx, r.spec, false, new(Single))
	if stop(); !needless {
		return l, Record{}, err
	}
	if l != nil {
		_ = l.Release()
	}
	return nil, found, nil
}

// await waits until enough accepts what is recorded, or the context ends. An
// error of the watch is the claim's as well.
func (w *Watch) await(ctx context.Context, enough func(Record) bool) (Record, bool) {
	for {
		select {
		case <-ctx.Done():
			return Record{}, false
		case <-w.Changed():
		}
		if rec, known, _ := w.Latest(); known && enough(rec) {
			return rec, true
		}
	}
}

// number is the register that keeps how many permits a semaphore has.
func (q *Quorum) number(s *Spec) (*Register, error) {
	lock, err := q.NewSpec(Spec{Name: s.Name, side: script.Number, Weight: 1, Capacity: 1, Set: s.Set})
	return q.Register(lock), err
}

// Resize changes how many permits a semaphore has, for all clients. It returns
// when a majority has the number. From then on every quorum of votes contains a
// node that knows it, so a smaller number holds for each claim that is admitted
// later. Nodes that have missed it are given it by repairs. Claims that hold
// are not ended by a smaller number: new ones wait until enough have left.
func (q *Quorum) Resize(ctx context.Context, s *Spec, n uint64) error {
	r, err := q.number(s)
	if err != nil {
		return err
	}
	var h *Hold
	for again := (Retry{}); ; again.Wait(ctx, q, s.Name, err) {
		if h, err = q.Acquire(ctx, r.spec, false, nil); err != nil {
			return err
		}
		if _, err = r.Open(ctx, h); err == nil {
			break
		}
		// No other call resizes under this claim, so the next one is above what
		// overtook it.
		if h.Release(); !errors.Is(err, fault.ErrLost) {
			return err
		}
	}
	defer h.Release()
	if err := r.Put(ctx, h, 0, strconv.AppendUint(nil, n, 10), 0); err != nil {
		return err
	}
	// Have every node serve the claims that fit now: any request does that.
	// Without it the waiters learn of a larger number with their next beat.
	// This one is of an id that has no claim, so it changes nothing else.
	t := protocol.Terms{ID: peers.NewID(), Weight: 1, Capacity: s.Capacity, Counting: true, TTL: s.Set.TTL}
	for _, n := range q.Nodes.All() {
		n.Send(&flow.Request{Command: q.command(nil, s, &t, protocol.Request{Op: protocol.OpBeat})})
	}
	return nil
}

// Permits asks the nodes how many permits a semaphore has: as the last Resize
// said, or else as declared.
func (q *Quorum) Permits(ctx context.Context, s *Spec) (uint64, error) {
	r, err := q.number(s)
	if err != nil {
		return 0, err
	}
	rec, err := r.Read(ctx)
	if err == nil && rec.Undecided {
		err = &fault.Failure{Err: fmt.Errorf("%w: a Resize is under way", fault.ErrHeld)}
	}
	if err != nil || !rec.Exists {
		return s.Capacity, err
	}
	return strconv.ParseUint(string(rec.Value), 10, 53)
}
