package core

// Views of records that are kept up to date by pushes and reads, for leader
// elections and their observers.
// Invariant: what Latest shows never goes back to an older version. A node that
// was disconnected may show an older one.

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
)

// Watch is a view of a record that is kept up to date. It has one goroutine,
// and is safe for concurrent use; mu guards rec, known, err and pushed. Updates
// come from pushes. The watch also reads every third of the ttl, and when the
// lease of the claim that recorded the value is due to end.
// Lock order: w.mu is a leaf.
type Watch struct {
	r        *Register
	terms    protocol.Terms // the id and ttl under which the nodes know the watch
	changed  chan struct{}
	readNow  chan struct{} // read at once
	readSoon chan struct{} // read after pushGrace, when more nodes may have pushed
	cancel   context.CancelFunc
	over     chan struct{}

	mu     sync.Mutex
	rec    Record
	known  bool
	err    error
	pushed [peers.MaxNodes]protocol.Ticket // per node
}

// Watch follows the record until Close.
// The caller must call Close, or the goroutine runs until the Quorum closes.
func (r *Register) Watch() *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{
		r: r, terms: protocol.Terms{ID: peers.NewID(), TTL: r.spec.Set.TTL},
		changed: make(chan struct{}, 1), readNow: make(chan struct{}, 1), readSoon: make(chan struct{}, 1),
		cancel: cancel, over: make(chan struct{}),
	}
	r.q.watches.add(w.terms.ID, w)
	go w.run(ctx)
	return w
}

// Changed receives after Latest may have changed, once for several changes.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Latest returns the newest known record, and the error of the last read that
// failed or decided something. known is false until a read has found a decided
// record. rec.Left is as of that read.
func (w *Watch) Latest() (rec Record, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rec, w.known, w.err
}

// Close ends the watch. It waits for the goroutine, which ends at once: if it
// is reading, the read ends with its context.
func (w *Watch) Close() {
	w.cancel()
	<-w.over
}

// end ends the watch on the nodes, once, without waiting for them. It is called
// when the goroutine of the watch ends, and when the Quorum closes. A node also
// drops the watches of a record by itself, at most two ttl after the last of
// them was renewed, or when it tells them of a change.
func (w *Watch) end() {
	q, t := w.r.q, w.terms
	if !q.watches.drop(t.ID) {
		return
	}
	t.TTL = 0
	r := protocol.Request{Op: protocol.OpRead}
	for _, n := range q.Nodes.All() {
		n.Notify(q.command(nil, w.r.spec, &t, r))
	}
}

// look makes the watch read after pushGrace.
func (w *Watch) look() { w.signal(w.readSoon) }

// signal sends on c without blocking. A signal that was not received yet is
// enough.
func (w *Watch) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pushGrace is how long a watch waits for a majority to push a change before it
// asks. 5 ms is longer than the delays between nodes in one region, and too
// short for a person or a failover to notice.
const pushGrace = 5 * time.Millisecond

// run is the watch's goroutine. It reads when a majority has pushed, pushGrace
// after a minority has, and otherwise every third of the ttl, since pushes may
// be lost. A push comes from one node alone, so it is only a reason to read.
func (w *Watch) run(ctx context.Context) {
	defer close(w.over)
	q, set := w.r.q, w.r.spec.Set
	defer w.end()
	// The first read is not a timer's. In a synctest bubble, timers that are due
	// at once crash the race detector now and then (go.dev/issue/78156).
	w.signal(w.readNow)
	due := time.Now()
	timer := time.NewTimer(set.TTL / 3)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.Over:
			w.take(Record{}, &fault.Failure{Err: fault.ErrClosed})
			return
		case <-w.readSoon:
			// Only move the read forward: otherwise endless pushes would delay
			// it forever.
			if soon := time.Now().Add(pushGrace); soon.Before(due) {
				due = soon
				timer.Reset(pushGrace)
			}
			continue
		case <-w.readNow:
		case <-timer.C:
		}
		// A read takes one round, and a second one if a value that only a
		// minority has must be brought to the others.
		asked, cancel := context.WithTimeout(ctx, q.Rounds(set, 2))
		rec, err := w.r.read(asked, lease.RegisterOp{Op: protocol.OpRead, Alive: true}, w.terms)
		cancel()
		if ctx.Err() != nil {
			return
		}
		w.take(rec, fault.Uncut(err))
		// Keep reading, because pushes may be lost, and because a node drops a
		// watch that no read has renewed for a while.
		pause := set.TTL / 3
		switch {
		case err != nil:
			pause = min(pause, set.NodeTimeout)
		case rec.Left > 0:
			pause = min(pause, rec.Left+time.Millisecond)
		}
		due = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// take stores the result of a read. Changed signals only what a caller can see:
// another version, the end of the lease, or a change in whether nodes answer.
func (w *Watch) take(rec Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && rec.Undecided {
		return // a push will follow when a run decides it
	}
	change := !w.known || (err == nil) != (w.err == nil)
	if w.err = err; err == nil {
		// Too many nodes have lost the newer record. Keep what is known, but
		// without a claim that holds it.
		if rec.version.Compare(w.rec.version) < 0 {
			rec = w.rec
			rec.Left = 0
		}
		change = change || rec.version != w.rec.version || (rec.Left > 0) != (w.rec.Left > 0)
		w.rec = rec
	}
	w.known = w.known || err == nil
	if change {
		w.signal(w.changed)
	}
}

// push handles a node's push that the record was written under ticket t. It
// runs on the reader of the node, and does not block. The push that completes a
// majority causes a read at once; later pushes only confirm what that read will
// find.
func (w *Watch) push(node int, t protocol.Ticket) {
	w.mu.Lock()
	w.pushed[node] = max(w.pushed[node], t)
	have, sets := uint32(0), w.r.q.Driver.Sets()
	for i, p := range w.pushed {
		if p >= t {
			have |= 1 << i
		}
	}
	w.mu.Unlock()
	if sets.Met(have) && !sets.Met(have&^(1<<node)) {
		w.signal(w.readNow)
	} else {
		w.signal(w.readSoon)
	}
}

// TurnUnless waits for a claim, or until enough accepts the record, which makes
// the claim needless. In that case l and err are nil. enough is called from
// another goroutine, but TurnUnless panics if enough does: enough may call
// functions of the user. The claim is awaited on the caller's goroutine, because
// the tracer is called there and may panic.
func (r *Register) TurnUnless(ctx context.Context, enough func(Record) bool) (
	l *Lease, found Record, err error,
) {
	watch := r.Watch()
	defer watch.Close()
	ctx, cancel := context.WithCancel(ctx)
	needless, panicked := false, any(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer func() {
			if panicked = recover(); panicked != nil {
				cancel()
			}
		}()
		found, needless = watch.await(ctx, enough)
		cancel()
	}()
	stop := func() {
		cancel()
		<-watched
	}
	defer stop() // also when the tracer panics
	l, err = r.q.AcquireLease(ctx, r.spec, false, new(Single))
	if stop(); !needless && panicked == nil {
		return l, Record{}, err
	}
	if l != nil {
		_ = l.Release()
	}
	if panicked != nil {
		panic(panicked)
	}
	return nil, found, nil
}

// await waits until enough accepts the record, or ctx ends. It ignores errors
// of the watch, since the claim meets the same errors.
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
