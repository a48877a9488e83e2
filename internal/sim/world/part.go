package world

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// Participant acquires, holds and releases, over and over.
type Participant struct {
	Proc   *Proc
	Name   string
	no     int // within its process
	Lock   int // the name that it claims: see node.data
	Weight uint64
	auto   bool // else a generator says when
	try    bool
	waits  bool // for the process to have nodes
	queued bool // it waits for a place
	count  int
	Att    *Attempt // nil: idle
	Value  *Value   // what callers share under its claims; nil: it acts by itself

	Keeps bool // it does not let go by itself
	// It acquires the name of the register that decides which configuration
	// follows; nil: another name.
	Register *process.Name
	succeeds *change.Succession

	run *runIO // it acquires only for that; nil: nothing is under way
}

func NewParticipant(p *Proc, i int) *Participant {
	w := p.World
	t := &Participant{
		Proc: p, no: i, Lock: i % max(1, w.Locks), Name: fmt.Sprintf("p%s%c", p.Name, 'a'+i),
		Weight: w.Weights[w.RNG.IntN(len(w.Weights))],
	}
	if w.Callers > 0 {
		t.Value = newValue(t)
	}
	return t
}

// shared is what all claims of the process share that claim this name.
func (t *Participant) shared() *process.Name {
	if t.Register != nil {
		return t.Register
	}
	if t.Proc.World.OneClock {
		return t.Proc.names[0]
	}
	return t.Proc.names[t.Lock]
}

// Label is the name in traces: the process's, and a number for all but the
// first of it.
func (t *Participant) Label() string {
	if t.no == 0 {
		return t.Proc.Label
	}
	return t.Proc.Label + strconv.Itoa(t.no+1)
}

func (t *Participant) Idle() bool {
	return t.Att == nil && !t.waits && !t.queued && (t.Value == nil || t.Value.idle())
}

// vanish: the process has gone.
func (t *Participant) vanish() {
	if t.Att != nil {
		t.Proc.World.Judge.Gone(t.Att)
	}
	t.Att, t.run, t.waits, t.queued = nil, nil, false, false
	if t.Value != nil {
		auto := t.Value.Callers[0].Auto
		t.Value = newValue(t)
		if t.Proc.World.Wire != nil {
			t.Value.Rename()
		}
		for _, c := range t.Value.Callers {
			c.Auto = auto
		}
	}
}

// Loop starts to acquire over and over.
func (t *Participant) Loop() {
	if t.Value != nil {
		t.Value.Loop()
		return
	}
	t.auto = true
	t.idleFor(t.Proc.World.Around(t.Proc.World.Think))
}

func (t *Participant) idleFor(d time.Duration) {
	if t.Value != nil {
		return
	}
	if t.auto && !t.Proc.World.Draining {
		t.Proc.Later(d, func() {
			if w := t.Proc.World; !w.Draining && t.Att == nil {
				t.Weight = w.Weights[w.RNG.IntN(len(w.Weights))]
				t.Acquire(w.TryEvery > 0 && w.RNG.IntN(w.TryEvery) == 0)
			}
		})
	}
}

// Drain: hold no longer than usual, and start no more.
func (t *Participant) Drain() {
	if t.Value == nil && t.Att != nil && t.Att.Seen == lease.Holding && !(t.Proc.World.Record && t.Lock == 0) {
		t.releaseLater()
	}
}

// Acquire makes an attempt.
func (t *Participant) Acquire(try bool) {
	p, w := t.Proc, t.Proc.World
	if t.Att != nil || t.queued || !p.Alive || p.closed {
		return
	}
	t.try = try
	if t.waits = p.Follower.waits() && !p.Follower.outOfSet(); p.Follower.waits() {
		return
	}
	if w.Places > 0 {
		if p.places == 0 {
			t.queued, p.crowd = true, append(p.crowd, t)
			return
		}
		p.places--
	}
	t.begin()
}

// begin makes an attempt, which may begin.
func (t *Participant) begin() {
	p, w, try := t.Proc, t.Proc.World, t.try
	t.count++
	if w.RNG.IntN(16) == 0 && w.Wire == nil {
		p.Adjust()
	}
	id, muted := w.NewID(), false
	later := t.leftOut(id)
	if w.Wire != nil {
		id, later = w.Wire.Claim(t)
	}
	a := &Attempt{Part: t, place: w.Places > 0, no: t.count, BeganAt: w.Now, Timer: course.Never, Rounds: 1,
		wanted: make([]protocol.Request, len(w.Nodes)), Claim: new(process.Attempt)}
	if !w.Clean && w.Wire == nil && (t.auto || t.Value != nil) && w.RNG.IntN(16) == 0 {
		a.Mute, muted = true, true
	}
	if t.Att = a; t.Value != nil {
		t.Value.Pending = a
	}
	w.Stats.Claims++
	cfg := p.Client.Config(t.Register != nil)
	cfg.Terms = protocol.Terms{ID: id, Weight: t.Weight, Capacity: w.Capacity, TTL: p.lease(),
		Counting: w.Counting, Notify: true}
	cfg.Try, cfg.ShortHold, cfg.NoRenewal, cfg.NodeTimeout, cfg.Drift = try, true, muted,
		w.NodeTimeout, w.Margin(p.lease())
	if t.Register != nil {
		cfg.Weight, cfg.Capacity, cfg.Counting = 1, 1, false
		cfg.TTL, cfg.NodeTimeout = t.succeeds.TTL, t.succeeds.NodeTimeout
	}
	var links lease.Links
	for i := range int(cfg.Nodes) {
		l := p.Link(i)
		// busy: so that Fanout defers nodes.
		links.Add(i, l.Up, l.waits(), p.Client.Fanout().NodeTimeout(i, cfg.NodeTimeout, cfg.TTL), true)
	}
	if later == nil { // as the runtime, with a name that differs from one claim to the next
		d := p.Client.Fanout().Defer(&cfg, string(id[9:10]), t.shared().Contended(), links)
		later = &d
	}
	p.Client.Start(p.Now(), a.Claim, t.shared(), cfg, links, *later)
	if w.Tape != nil {
		w.tapeClaim(t, id, *later)
		defer func() {
			if muted {
				w.Tape.Note("mute %s", t.Label())
			}
		}()
		defer w.Tape.Within()()
	}
	a.T0, a.ticket = a.Claim.State.Ticket(), a.Claim.State.Ticket()
	w.Judge.Began(a)
	if w.Trace != nil {
		w.Log("%v: start T0=%s weight %d try=%v", a, TicketName(a.ticket), t.Weight, try)
	}
	a.After()
	if w.CancelEvery > 0 && t.auto && w.RNG.IntN(w.CancelEvery) == 0 {
		p.Later(w.Around(w.Hold), func() {
			if t.Att == a && a.Seen < lease.Holding {
				t.Release()
			}
		})
	}
}

// Release withdraws the claim, held or not.
func (t *Participant) Release() {
	t.waits = false
	if t.queued {
		t.Proc.crowd = slices.DeleteFunc(t.Proc.crowd, func(o *Participant) bool { return o == t })
		t.queued = false
	}
	if a := t.Att; a != nil {
		t.Proc.World.Tape.Note("leave %s", t.Label())
		a.event(func() { a.Claim.Leave(t.Proc.Now()) })
	}
}

// whim is what else holders do: they renew now, or give a part back.
func (t *Participant) whim(a *Attempt) {
	w := t.Proc.World
	if w.RNG.IntN(8) > 0 {
		return
	}
	weight := w.Weights[w.RNG.IntN(len(w.Weights))]
	t.Proc.Later(w.Around(w.Hold)/2, func() {
		a.Before()
		if weight < a.Claim.State.Weight && a.Claim.State.Phase() == lease.Holding {
			w.Log("%v: weighs %d from now on", a, weight)
			w.Tape.Note("shrink %s %d", t.Label(), weight)
			a.Claim.Shrink(a.Now(), weight)
		} else if w.MaxHold == 0 { // a renewal that a caller asks for goes past WithMaxHold
			w.Tape.Note("renew %s", t.Label())
			a.Claim.Renew(a.Now())
		}
		a.After()
	})
}

func (t *Participant) releaseLater() {
	a := t.Att
	t.Proc.Later(t.Proc.World.Around(t.Proc.World.Hold), func() {
		if t.Att == a {
			t.Release()
		}
	})
}

// Holds is a condition for once: t may act as holder.
func Holds(t *Participant) func() bool {
	return func() bool { return t.Att != nil && t.Att.InForce() }
}

// leftOut returns which nodes a claim asks only later, and when: in one of two
// cases none, in one of four those that Fanout.Defer says (nil), else any
// that leave a quorum, drawn from the id.
func (t *Participant) leftOut(id protocol.ID) *lease.Deferral {
	w := t.Proc.World
	switch {
	case !w.ShortHold || id[5]%2 == 0:
		return &lease.Deferral{}
	case id[5]%4 == 1:
		return nil
	}
	most, nodes := w.Spare(), uint32(0)
	for k := range len(w.Nodes) {
		if i := (int(id[6]) + k) % len(w.Nodes); most > 0 && id[7]>>(k%8)&1 == 0 {
			nodes |= 1 << i
			most--
		}
	}
	return &lease.Deferral{Nodes: nodes, After: w.NodeTimeout * time.Duration(id[8]) / 1024}
}

// Insists has t claim again after an error, until it holds.
func (t *Participant) Insists() {
	w := t.Proc.World
	if t.Att == nil && !t.waits {
		t.Acquire(false)
	}
	if !Holds(t)() && !w.Draining {
		w.At(w.NodeTimeout, t.Insists)
	}
}
