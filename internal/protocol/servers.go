package protocol

import (
	"slices"
	"time"
)

// Servers knows which server each address of a client reaches, by the identity
// that every run of a server has. Where that is not known, the incarnation of
// the server's memory stands for it. It is not safe for concurrent use.
//
// Invariant: at no time may two addresses vote that reach one server, neither
// by their answers nor by a lease that one of them gave before. Else one server
// is two of the nodes, and two claims hold with a vote each of their own and
// two of its.
type Servers struct {
	guard time.Duration
	rules Rules
	at    []server
}

// server is what one address reaches, as of its last connection that may vote.
type server struct {
	run         string      // the identity; empty: unknown
	incarnation Incarnation // of the memory that it voted with last; 0: it has not voted
	up          bool
	since       Time // down since then, when it is not up
	same        int  // the address that this one was found to share a server with; -1: none
	left        []leftServer
}

// leftServer is a server that an address voted for before it reached another
// one. The leases that the server gave under that address end by a time.
type leftServer struct {
	run         string
	incarnation Incarnation
	ends        Time
}

// NewServers returns the Servers of so many addresses. No lease outlasts the
// guard time.
func NewServers(addresses int, guard time.Duration, rules Rules) *Servers {
	s := &Servers{guard: guard, rules: rules}
	s.grow(addresses)
	return s
}

// grow has the client know so many addresses.
func (s *Servers) grow(addresses int) {
	for len(s.at) < addresses {
		s.at = append(s.at, server{same: -1})
	}
}

// Connect says that address i has reached the given run of a server, and
// returns the address that may vote for that server instead, -1 if it is i. The
// first to be connected may. That one keeps its vote while it is down, because
// the leases that it gave run on, and so until a guard time later. It keeps it,
// too, when both reconnect in the other order: an address that was refused is
// accepted only when the other one has reached another server, and the leases
// have ended that it left.
func (s *Servers) Connect(now Time, i int, run string) (other int) {
	a := &s.at[i]
	if a.same >= 0 && s.votes(now, a.same) {
		if o := &s.at[a.same]; run != "" && !(o.up && o.run != run) {
			return a.same
		}
	}
	if run != a.run {
		s.leave(now, i)
	}
	if !s.votes(now, i) && s.rules.on(RuleRefused) { // its leases have ended, and another address may vote by now
		a.incarnation = 0
	}
	for j := range s.at {
		if j != i && run != "" && s.gave(now, j, leftServer{run: run}) && s.rules.on(RuleServer) {
			a.run, a.same = "", j
			return j
		}
	}
	*a = server{run: run, incarnation: a.incarnation, up: true, since: a.since, same: -1, left: a.left}
	return -1
}

// leave says that address i has reached another server than before.
//
// Invariant: a server that an address has left gets no vote under another one
// until the leases have ended that it gave. Else a claim that has one of them,
// and gets the vote of the same server under the other address, counts it
// twice, until the first address has told what its new server knows of the
// claim.
func (s *Servers) leave(now Time, i int) {
	a := &s.at[i]
	l := leftServer{a.run, a.incarnation, now.Add(s.guard)}
	if !a.up {
		l.ends = a.since.Add(s.guard)
	}
	a.left = slices.DeleteFunc(a.left, func(o leftServer) bool { return now > o.ends || o.run == l.run && o.incarnation == l.incarnation })
	if (l.run != "" || l.incarnation != 0) && now <= l.ends && s.rules.on(RuleLeft) {
		a.left = append(a.left, l)
	}
	a.run, a.incarnation = "", 0
}

// gave reports whether address j votes for a server, or may have a lease from
// it.
func (s *Servers) gave(now Time, j int, of leftServer) bool {
	o := &s.at[j]
	same := func(l leftServer) bool {
		return of.run != "" && l.run == of.run || of.incarnation != 0 && l.incarnation == of.incarnation
	}
	return same(leftServer{run: o.run, incarnation: o.incarnation}) && s.votes(now, j) ||
		slices.ContainsFunc(o.left, func(l leftServer) bool { return now <= l.ends && same(l) })
}

// OtherAddress returns the address that may vote with this incarnation instead
// of address i, -1 if there is none. Two addresses with one incarnation reach
// one server, or a copy of its memory.
//
// Invariant: an address that is down keeps its incarnation until its leases
// have ended. Else both reconnect, the other one first, and it votes beside the
// lease that the server gave under the first address.
func (s *Servers) OtherAddress(now Time, i int, inc Incarnation) int {
	for j := range s.at {
		if j != i && s.gave(now, j, leftServer{incarnation: inc}) && (s.at[j].up || s.rules.on(RuleDownKeeps)) {
			return j
		}
	}
	return -1
}

// Vote says that address i has shown this incarnation. If OtherAddress returns
// no other address, i votes with it from now on. Vote returns what OtherAddress
// does.
//
// Invariant: an address that is refused a vote keeps no other one for longer
// than the leases run that it gave. Without that, two addresses that change
// places keep each other's incarnation, and neither votes again.
func (s *Servers) Vote(now Time, i int, inc Incarnation) (other int) {
	other = s.OtherAddress(now, i, inc)
	a := &s.at[i]
	if a.incarnation != 0 && a.incarnation != inc && (other < 0 || s.rules.on(RuleRefused)) {
		run := a.run
		s.leave(now, i)
		a.run = run
	}
	if other < 0 {
		a.incarnation = inc
	}
	return other
}

// votes reports whether what address j gave may still count.
func (s *Servers) votes(now Time, j int) bool {
	o := &s.at[j]
	return o.up || now.Sub(o.since) <= s.guard
}

// Down says that the connection to address i has ended.
func (s *Servers) Down(now Time, i int) {
	if a := &s.at[i]; a.up {
		a.up, a.since = false, now
	}
}

// Failed says that the connection to address i has ended before it was used.
//
// Invariant: a connection that was never used keeps no vote: its server has
// given no lease by it. Without the rule two servers change their addresses
// with each other, the set refuses the first handshake, and with each further
// try that address keeps the other one refused, which would show the set what
// has happened.
func (s *Servers) Failed(i int) {
	a := &s.at[i]
	if a.up = false; a.incarnation == 0 {
		a.run = ""
	}
}

// Run returns the identity of the server that address i reaches, empty if that
// is unknown.
func (s *Servers) Run(i int) string { return s.at[i].run }
