package protocol_test

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file plays random histories of a set that two clients follow, each of
// which wants one lock. It adds to histories_test.go what takes two clients to
// see: servers lose their data and get it back, clients start again with lists
// of before or of several sets, sleep while an operator exchanges nodes, and
// servers stay behind. A server gives its vote to one of the two at a time. A
// history fails if
//
//   - both hold the lock
//   - something goes wrong that histories_test.go checks of a client
//   - a quiet time is over, and a client does not use a member that runs.

// grant is a vote that a server gave. It goes with the server's data, so a copy
// has it.
type grant struct {
	to, id int // the client, and which grant it is; 0 is none
}

// seat is one of the two clients, while it is not the one that does something.
type seat struct {
	client  *protocol.Membership
	conns   [numbers]*server
	views   views
	named   map[string]bool
	seen    map[string]*server
	runs    [numbers]string // the run of the server of each connection
	grants  [numbers]int    // the grant by which a view has a vote
	epochs  [numbers]uint64 // of the configuration in which it was given
	listed  int
	holding bool
}

// rivals is a history with two clients.
type rivals struct {
	*history
	rules  protocol.Rules
	seats  [2]*seat
	turn   int // the client that does something
	grants map[*server]grant
	given  int
	was    map[*server]string // the identity that each server had
	owner  map[string]*server // the server of an identity, also when that has lost its data
	lists  [][]string         // of the sets

	losses, swaps, many bool
}

// rivalKinds is how many kinds of histories there are. No kind has copies and
// changes of addresses: what shows C's data at A's address is taken for C then,
// which docs/membership.md names in rule 8.
const rivalKinds = 4

func newRivals(seed uint64, rules protocol.Rules) *rivals {
	kind, names := seed%rivalKinds, slices.Clone(addresses)
	if kind == 2 {
		for i := range 50 {
			names = append(names, fmt.Sprint("X", i))
		}
	}
	h := newHistory(seed, rules, names...)
	r := &rivals{history: h, rules: rules, grants: map[*server]grant{}, was: map[*server]string{}, owner: map[string]*server{}, lists: [][]string{h.config.Addrs()}}
	h.copies, h.finds, h.quiet = kind == 1 || kind == 2, kind == 3, kind != 1
	r.swaps, r.losses, r.many = kind == 0 || kind == 3, kind != 2, kind == 2
	for _, m := range h.config.Members {
		r.owner[m.Identity] = h.home[m.Addr]
	}
	for _, s := range h.servers {
		r.was[s] = s.keeps.Identity
	}
	for k := range r.seats {
		r.seats[k] = &seat{}
		r.use(k)
		r.start(h.config.Addrs())
	}
	return r
}

// use has what follows be done by, and to, one of the clients.
func (r *rivals) use(k int) {
	o, n := r.seats[r.turn], r.seats[k]
	if r.turn != k {
		o.client, o.conns, o.views, o.named, o.seen = r.client, r.conns, r.views, r.named, r.seen
		r.client, r.conns, r.views, r.named, r.seen = n.client, n.conns, n.views, n.named, n.seen
	}
	r.turn = k
}

// start has a client start with a list.
func (r *rivals) start(list []string) {
	r.say("client %d starts with %v", r.turn, list)
	r.client = protocol.NewMembership(list, r.rules)
	r.client.Exchanges = true
	r.conns, r.views, r.named, r.seen = [numbers]*server{}, views{}, map[string]bool{}, map[string]*server{}
	s := r.seats[r.turn]
	s.runs, s.grants, s.listed, s.holding = [numbers]string{}, [numbers]int{}, len(list), false
}

// count is how many numbers the client has.
func (r *rivals) count() int {
	return min(numbers, max(r.seats[r.turn].listed, r.client.Group().Nodes))
}

func (r *rivals) number() int { return r.rand.IntN(r.count()) }

var rivalSteps = steps[*rivals]{
	{8, func(r *rivals) { r.connect(r.number()) }},
	{6, func(r *rivals) { r.answer(r.number()) }},
	{1, func(r *rivals) { r.breakConnection(r.number()) }},
	{1, (*rivals).changeAddresses},
	{1, func(r *rivals) { r.restoreAddresses() }},
	{2, (*rivals).operate},
	{1, func(r *rivals) { r.restart() }},
	{1, (*rivals).copyServer},
	{1, func(r *rivals) { r.discover() }},
	{1, (*rivals).lose},
	{1, (*rivals).startAgain},
	{1, (*rivals).sleep},
	{1, (*rivals).release},
}

// step has something happen to one of the clients.
func (r *rivals) step() {
	r.use(r.rand.IntN(2))
	rivalSteps.draw(r.rand)(r)
	r.passes()
}

// passes has what each client and server would find out meanwhile: connections
// to a server that has gone end, and a server that begins as a member has had
// its guard time, in which the leases end that the member gave before.
func (r *rivals) passes() {
	for _, s := range r.servers {
		id := s.keeps.Identity
		if id == r.was[s] {
			continue
		}
		r.was[s] = id
		if s.copied {
			continue
		}
		delete(r.grants, s)
		o := r.member(id)
		for k := range r.seats {
			r.use(k)
			for i := range numbers {
				if id != "" && o == s && r.views.holder[i] == id {
					r.views.holder[i], r.views.waiter[i] = "", ""
				}
			}
		}
	}
	for k, s := range r.seats {
		r.use(k)
		for i := range numbers {
			switch c := r.conns[i]; {
			case c == nil:
				s.runs[i] = ""
			case s.runs[i] == "":
				s.runs[i] = c.runOf()
			case s.runs[i] != c.runOf() || !c.up || r.leads[r.client.Addr(i)] != c:
				s.runs[i] = ""
				r.disconnect(i)
			}
		}
		r.settle(-1)
	}
}

// answer has a node give its vote, if it is free.
func (r *rivals) answer(i int) {
	s, c := r.conns[i], r.client.Config()
	if s == nil || c == nil {
		return
	}
	if s.keeps.Stamp() != c.Stamp {
		r.client.Refused(i)
		r.settle(-1)
		return
	}
	if r.client.Verdict(i).Fault != protocol.SetFits {
		return
	}
	g := r.grants[s]
	if g.to != r.turn || g.id == 0 {
		if g.id != 0 && r.lives(g) {
			return
		}
		r.given++
		g = grant{r.turn, r.given}
		r.grants[s] = g
	}
	r.history.answer(i)
	r.seats[r.turn].grants[i], r.seats[r.turn].epochs[i] = g.id, s.keeps.Stamp().Epoch()
	r.say("%s votes for client %d by number %d as %s, grant %d", s.name, r.turn, i, s.keeps.Identity, g.id)
}

// lives reports whether the lease of a grant has not ended.
func (r *rivals) lives(g grant) (lives bool) {
	turn := r.turn
	r.use(g.to)
	for i := range numbers {
		lives = lives || r.seats[g.to].grants[i] == g.id && r.views.holder[i] != ""
	}
	r.use(turn)
	return lives
}

// release has a client leave: its votes are given back where it is connected.
func (r *rivals) release() {
	r.say("client %d leaves", r.turn)
	for i, s := range r.conns {
		if s != nil && r.grants[s].to == r.turn {
			delete(r.grants, s)
		}
		r.views.holder[i], r.views.waiter[i] = "", ""
	}
	r.seats[r.turn].holding = false
}

// holds finds out whether each client holds, and returns what is wrong.
func (r *rivals) holds() string {
	for k, s := range r.seats {
		r.use(k)
		waits, holds := uint32(0), uint32(0)
		v := &r.views
		for i := range numbers {
			if v.waiter[i] != "" && !v.outside[i] && !v.unheard[i] {
				waits |= 1 << i
			}
			if v.holder[i] != "" {
				holds |= 1 << i
			}
		}
		g := r.client.Group()
		was := s.holding
		s.holding = r.client.Config() != nil && r.client.Wrong().Fault == protocol.SetFits && (g.Sets.Met(waits) || s.holding && g.Sets.Met(holds))
		if was != s.holding {
			r.say("client %d holds: %v", k, s.holding)
		}
	}
	if r.seats[0].holding && r.seats[1].holding {
		return "two holders"
	}
	return ""
}

// checks checks both clients.
func (r *rivals) checks() string {
	for k := range r.seats {
		r.use(k)
		if fault := r.check(); fault != "" {
			return fmt.Sprintf("client %d: %s", k, fault)
		}
		if fault := r.checkCopies(); fault != "" {
			return fmt.Sprintf("client %d: %s", k, fault)
		}
	}
	return r.holds()
}

// checkCopies: where no server changes its address, no copy has a vote. One may
// have it at an address that the client's configuration does not know: see the
// limits.
func (r *rivals) checkCopies() string {
	c := r.client.Config()
	if r.swaps || c == nil || c.Stamp.Epoch() == 1 {
		return ""
	}
	for i, s := range r.conns {
		if s != nil && c.Place(r.client.Addr(i)) < 0 && !slices.Contains(c.Former, r.client.Addr(i)) {
			continue
		}
		if s != nil && s.copied && r.connected(i) && r.client.Member(i) >= 0 && r.client.Verdict(i).Fault == protocol.SetFits {
			return fmt.Sprintf("%s has a copy of %s, and a vote at %s", s.name, s.keeps.Identity, r.client.Addr(i))
		}
	}
	return ""
}
