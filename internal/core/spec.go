package core

// This file owns what a primitive asks the nodes for.
//
// Invariant: all claims of one value share one process.Name, because the clock
// of its tickets is there: a claim of this process must be above the claims
// that it has seen.

import (
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// Spec is what a primitive asks for; one Spec serves many attempts. It is safe
// for concurrent use: NewSpec sets its fields.
type Spec struct {
	Name       string
	Kind       string // of the primitive, for the tracer
	Weight     uint64
	Capacity   uint64
	Counting   bool // a semaphore: votes alone do not suffice
	Notify     bool // push to the holder when a claim begins to wait
	ShortHold  bool // often given back at once: see lease.Fanout
	Set        *setup.Settings
	shared     *process.Name // what all claims at the name share
	succession bool          // it is the register that decides which configuration follows
	side       string        // of the name: a lock, queue and record of its own, beside those of the name; empty: the name itself
}

// keys are the keys of a spec's name, with the marker of the configuration that
// this client counts on.
// Invariant: the Quorum says which configuration that is, whatever settings the
// spec has.
func (q *Quorum) keys(s *Spec) script.Keys {
	return script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(q.members.home())
}

// command appends a request. Invariant: the configuration that it names and the
// settings that it has are read at one moment. A node goes by these.
func (q *Quorum) command(dst []byte, s *Spec, t *protocol.Terms, r protocol.Request) []byte {
	n := q.members.named.Load()
	k := script.NewKeysBeside(s.Set.Prefix, s.Name, s.side).At(n.home)
	return script.AppendCommand(dst, k, t, q.channel, n.guard, n.retention, r)
}

// WithWeight returns a copy that asks for another weight.
func (s *Spec) WithWeight(weight uint64) *Spec {
	c := *s
	c.Weight = weight
	return &c
}

// quiet reports whether no other claim has been met at the name of late.
func (s *Spec) quiet() bool { return !s.shared.Contended() }

// NewSpec fails for a name that cannot be used, before any node is asked.
func (q *Quorum) NewSpec(s Spec) (*Spec, error) {
	if err := setup.CheckName(s.Name); err != nil {
		return nil, err
	}
	made := &struct { // the two are used together
		spec Spec
		name process.Name
	}{spec: s}
	made.name.Name, made.name.Counting = s.Name, s.Counting
	made.spec.shared = &made.name
	return &made.spec, nil
}
