package protocol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what happens to the servers and to the set in the histories of
// histories_rivals_test.go, and how such a history ends.

// changeAddresses has two or three addresses lead to each other's servers.
func (r *rivals) changeAddresses() {
	if !r.swaps {
		return
	}
	r.swapAddresses()
	if r.one(3) {
		r.swapAddresses()
	}
}

// copyServer has a server that is no member come back with the data of another
// one, at an address that is no member's or is one of before.
func (r *rivals) copyServer() {
	s, o := r.server(), r.server()
	if !r.copies || s == o || r.owner[o.keeps.Identity] == s || o.keeps.Config == nil || r.config.Place(strings.TrimPrefix(s.name, "server ")) >= 0 {
		return
	}
	s.keeps, s.copied = o.keeps, true
	s.run++
	r.grants[s] = r.grants[o]
	r.say("%s has a copy of the data of %s, %s", s.name, o.name, o.keeps.Identity)
}

// lose has a server lose its data, if enough members are left that decide, or
// get its place back by the word of another client.
func (r *rivals) lose() {
	s := r.server()
	if !r.losses {
		return
	}
	if s.keeps.Config == nil {
		for _, m := range r.config.Members {
			if r.owner[m.Identity] == s && s.up && r.decides(0) {
				r.say("%s becomes %s again by another client", s.name, m.Identity)
				s.run++
				s.record(r.config, m.Identity)
			}
		}
		return
	}
	if k := r.config.Member(s.keeps.Identity); k >= 0 && !s.copied && r.config.Members[k].Role != protocol.Enters && !r.decides(1) {
		return
	}
	s.run++
	s.keeps, s.copied = protocol.NodeSet{}, false
	r.say("%s loses its data", s.name)
}

// decides reports whether a majority of the members that decide has its data,
// if so many fewer had it.
func (r *rivals) decides(fewer int) bool {
	old, has := 0, -fewer
	for _, m := range r.config.Members {
		if m.Role != protocol.Enters {
			old++
			if r.member(m.Identity) != nil {
				has++
			}
		} else if r.config.Stage == protocol.Jointly && r.member(m.Identity) == nil {
			return false
		}
	}
	return 2*has > old
}

// operate has an operator decide what follows.
func (r *rivals) operate() {
	if !r.decides(0) {
		return
	}
	if next, undone := r.next(r.draws, r.enters); next != nil {
		r.follows(next, undone)
	}
}

// draws draws an exchange at random. Where there are many servers most of them
// replace one member, so that a client sees more than it has numbers for.
func (r *rivals) draws() protocol.Change {
	if !r.many || r.one(4) {
		return r.change()
	}
	c := r.config
	ch := protocol.Change{Remove: []string{c.Members[r.rand.IntN(len(c.Members))].Addr}}
	for _, k := range r.rand.Perm(len(r.addresses)) {
		addr := r.addresses[k]
		if s := r.home[addr]; c.Place(addr) < 0 && s.keeps.Config == nil && s.up {
			ch.Add = []protocol.Member{{Identity: r.word("new"), Addr: addr}}
			return ch
		}
	}
	return ch
}

// enters gives the members that enter their data.
func (r *rivals) enters() {
	for _, m := range r.config.Members {
		if m.Role == protocol.Enters {
			r.owner[m.Identity] = r.home[m.Addr]
		}
	}
	r.enter()
}

// follows has a majority of each set have moved to the present configuration,
// and decides what follows it.
func (r *rivals) follows(next *protocol.Configuration, undone bool) {
	was := r.config
	behind := func(enters bool) int { // how many may stay behind
		n, lost := 0, 0
		for _, m := range was.Members {
			if enters && m.Role == protocol.Leaves || !enters && m.Role == protocol.Enters {
				continue
			}
			if n++; r.member(m.Identity) == nil {
				lost++
			}
		}
		return (n-1)/2 - lost
	}
	old, later := behind(false), behind(true)
	for _, k := range r.rand.Perm(len(was.Members)) {
		m := was.Members[k]
		s := r.member(m.Identity)
		if s == nil || s.keeps.Config.Stamp.Epoch() >= was.Stamp.Epoch() {
			continue
		}
		if m.Role != protocol.Enters && r.one(2) && old > 0 && (m.Role == protocol.Leaves || later > 0) {
			if old--; m.Role != protocol.Leaves {
				later--
			}
			continue
		}
		s.record(was, m.Identity)
	}
	turn := r.turn
	waits := next.Stage == protocol.Jointly || next.Stage == protocol.Stable && !undone
	for k := range r.seats {
		r.use(k)
		v := &r.views
		for i := range numbers {
			if waits && v.former[i] || next.Stage == protocol.Stable && !undone && r.outlived(k, i, was) {
				v.waiter[i], v.holder[i] = "", ""
			}
			v.former[i] = v.holder[i] != ""
		}
	}
	r.use(turn)
	r.config = next
	if next.Stage == protocol.Stable {
		r.lists = append(r.lists, next.Addrs())
	}
	for _, m := range next.Members {
		if s := r.member(m.Identity); s != nil && s.up && r.one(2) {
			s.record(next, m.Identity)
		}
	}
}

// outlived reports whether the lease of a view has ended when what follows a
// joint configuration is decided: its server has served that for a guard time,
// and gave the vote before.
func (r *rivals) outlived(k, i int, joint *protocol.Configuration) bool {
	s := r.member(r.views.holder[i])
	return s != nil && s.keeps.Stamp().Epoch() >= joint.Stamp.Epoch() && r.seats[k].epochs[i] < joint.Stamp.Epoch()
}

// sleep has a client be disconnected while the operator goes on.
func (r *rivals) sleep() {
	if r.one(2) {
		return
	}
	r.say("client %d sleeps", r.turn)
	for i := range numbers {
		r.disconnect(i)
	}
	for range 1 + r.rand.IntN(6) {
		r.operate()
	}
}

// startAgain has a client start again, with the list of a set, or one that has
// addresses of several.
func (r *rivals) startAgain() {
	if r.one(2) {
		return
	}
	list := r.lists[len(r.lists)-1]
	switch r.rand.IntN(3) {
	case 0:
		list = r.lists[r.rand.IntN(len(r.lists))]
	case 1:
		list = r.mixed()
	}
	last := r.lists[len(r.lists)-1]
	for _, a := range list {
		if !slices.Contains(last, a) && !slices.Contains(r.config.Former, a) {
			list = last // too old: see the limits
		}
	}
	r.start(list)
}

// mixed draws a list of addresses of several sets. One of them is of now: a
// list of retired nodes alone, which have lost their data, tells nothing.
func (r *rivals) mixed() []string {
	if len(r.lists) == 1 {
		return r.lists[0]
	}
	last := r.lists[len(r.lists)-1]
	list := []string{last[r.rand.IntN(len(last))]}
	for range 1 + r.rand.IntN(3) {
		from := r.lists[r.rand.IntN(len(r.lists))]
		if a := from[r.rand.IntN(len(from))]; !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	r.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// calms begins a quiet time.
func (r *rivals) calms() {
	for _, m := range r.config.Members {
		if s := r.owner[m.Identity]; s != nil && r.member(m.Identity) == nil {
			s.copied = false
			s.record(r.config, m.Identity)
		}
	}
	for r.config.Stage != protocol.Stable {
		r.ballots++
		next := r.config.Finish(ballot(r.ballots))
		if r.config.Stage == protocol.Learning {
			r.enters()
			next = r.config.Join(ballot(r.ballots))
		}
		r.follows(next, false)
	}
	r.say("a quiet time begins: configuration %d, %v, of before %v", r.config.Stamp.Epoch(), r.config.Addrs(), r.config.Former)
	for _, addr := range r.addresses {
		s := r.home[addr]
		r.leads[addr] = s
		s.run++
		if s.up = true; r.config.Place(addr) >= 0 {
			continue
		}
		if s.copied || r.one(3) {
			s.keeps, s.copied = protocol.NodeSet{}, false
		}
	}
	spare := (len(r.config.Members) - 1) / 2
	for _, k := range r.rand.Perm(len(r.config.Members)) {
		m := r.config.Members[k]
		s := r.home[m.Addr]
		was := s.keeps
		s.copied = false
		s.record(r.config, m.Identity)
		if spare > 0 && r.one(2) {
			spare--
			switch {
			case r.one(3):
				s.keeps = protocol.NodeSet{}
				r.say("%s is empty", s.name)
			case r.one(2):
				s.up = false
				r.say("%s is down", s.name)
			case was.Identity == m.Identity:
				s.keeps = was
				r.say("%s keeps configuration %d", s.name, was.Config.Stamp.Epoch())
			}
		}
	}
	r.passes()
}

// fresh starts a client again that cannot find the set: none of its list is a
// member that knows it, a newer list has named an address that leads to another
// server by now, or it may have no number left. See the limits.
func (r *rivals) fresh() {
	known := false
	for i := range r.seats[r.turn].listed {
		s := r.home[r.client.Addr(i)]
		known = known || r.config.Place(r.client.Addr(i)) >= 0 && s.up && s.keeps.Stamp() == r.config.Stamp
	}
	if r.many || !known || len(r.named) > 0 {
		r.start(r.config.Addrs())
	}
}

// doubted reports whether the client may leave an empty member alone: it has
// met another member there last, which is down now. Until one of the two is
// seen elsewhere the empty server may be either (Membership.doubtful).
func (r *rivals) doubted() bool {
	return slices.ContainsFunc(r.config.Members, func(m protocol.Member) bool {
		s := r.seen[m.Addr]
		return r.home[m.Addr].keeps.Config == nil && s != nil && s != r.home[m.Addr] && !s.up && r.config.Member(s.keeps.Identity) >= 0
	})
}

// play plays the history and returns what goes wrong, empty for nothing.
func (r *rivals) play() (fault string) {
	defer func() {
		if p := recover(); p != nil {
			fault = fmt.Sprint("panic: ", p)
		}
	}()
	steps := 90
	if r.many {
		steps = 300
	}
	for range steps {
		r.step()
		if r.over {
			return ""
		}
		if fault := r.checks(); fault != "" {
			return fault
		}
	}
	if !r.quiet {
		return ""
	}
	return r.settles()
}

// settles has a quiet time, in which each client comes to use all members that
// run.
func (r *rivals) settles() string {
	r.calms()
	for k := range r.seats {
		r.use(k)
		r.fresh()
	}
	for range 2 * quietRounds {
		for k := range r.seats {
			r.use(k)
			for i := range r.count() {
				if r.conns[i] != nil && r.client.Verdict(i).Fault != protocol.SetFits && r.one(2) {
					r.disconnect(i)
				}
				if !r.one(3) {
					r.connect(i)
				}
				r.use(k)
			}
			r.passes()
			r.use(k)
		}
		if fault := r.checks(); fault != "" {
			return fault
		}
	}
	for k := range r.seats {
		r.use(k)
		if fault := r.serves(); fault != "" && !r.doubted() {
			return fmt.Sprintf("client %d: %s", k, fault)
		}
	}
	return ""
}

func TestRivalHistories(t *testing.T) {
	t.Parallel()
	rivalHistories(t, protocol.Rules{}, *seed, *seeds)
}

// rivalHistories plays the histories of some seeds until one of them goes
// wrong, and prints that one.
func rivalHistories(t assert.TestingT, rules protocol.Rules, first uint64, n int) {
	for s := first; s < first+uint64(n); s++ {
		r := newRivals(s, rules)
		if fault := r.play(); fault != "" {
			t.Errorf("history %d: %s\n%s", s, fault, strings.Join(r.lines, "\n"))
			return
		}
	}
}
