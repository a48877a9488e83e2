package nodeset_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/findings"
)

// This file plays random histories of a set that two clients follow, each of
// which wants one lock, while operators change the set and die. Servers lose
// their data, come back with older files, and show forged records: fewer than a
// majority of those that decide at one time. A history fails if
//
//   - both clients hold the lock
//   - a client counts on a configuration that was not decided, or dials an
//     address of none
//   - two configurations are decided to follow one
//   - a quiet time is over, and a client does not use all members.

var (
	seeds = flag.Int("seeds", 500, "how many histories of a set to play")
	seed  = flag.Uint64("seed", 1, "the first history; with -seeds=1 it is printed")
)

const (
	historyGuard = 1000 // milliseconds, of the set
	historyLease = historyGuard/2 - 1
)

var places = strings.Split("ABCDEF", "")

// locker is a client, and what its claim knows.
type locker struct {
	*party
	claim   int
	counted nodeset.Stamp // on which the claim counts
	sets    protocol.Quorums
	votes   map[int]vote
	kept    int64 // a deadline of before
}

type history struct {
	*world
	rand     *rand.Rand
	clients  [2]*locker
	operator *party
	exchange *change.Exchange
	on       *nodeset.Configuration // what the exchange goes on from
	latest   *nodeset.Configuration
	decided  map[nodeset.Stamp]*nodeset.Configuration // which follows
	lists    [][]string
	versions uint64
	liar     string
}

func newHistory(seed uint64) *history {
	h := &history{world: newWorld(), rand: rand.New(rand.NewPCG(seed, 7)), decided: map[nodeset.Stamp]*nodeset.Configuration{}}
	h.now, h.liar = 100*historyGuard, places[seed%6]
	p := h.wanting(places[:3]...)
	r := p.recording(h.one(2), nodeset.SetRetire)
	h.decides("", r.Config)
	for i := range h.clients {
		h.begin(i)
	}
	h.operator = h.start(h.lists[0]...)
	return h
}

func (h *history) one(n int) bool { return h.rand.IntN(n) == 0 }

func (h *history) server() *server { return h.at(places[h.rand.IntN(len(places))]) }

func (h *history) time() protocol.Time { return protocol.Time(h.now * int64(time.Millisecond)) }

// begin has a client start with the list of a set.
func (h *history) begin(i int) {
	list := h.lists[len(h.lists)-1]
	if h.one(4) {
		list = h.lists[h.rand.IntN(len(h.lists))]
	}
	h.say("client %d starts with %v", i, list)
	h.clients[i] = &locker{party: h.start(list...), claim: h.fresh(), votes: map[int]vote{}}
}

// decides has a configuration follow another one.
func (h *history) decides(of nodeset.Stamp, next *nodeset.Configuration) {
	if was := h.decided[of]; was != nil {
		if was.Stamp != next.Stamp {
			h.fault = fmt.Sprintf("%s and %s follow %s", was.Stamp, next.Stamp, of)
		}
		return
	}
	h.say("decided: %s %v %v", next.Stamp, next.Stage, next.Members)
	h.decided[of], h.latest = next, next
	if next.Stage == nodeset.Stable {
		h.lists = append(h.lists, next.Addrs())
	}
}

// spares reports whether a majority of those that decide, and of the set that
// follows, is left if a server loses what it knows.
func (h *history) spares(s *server) bool {
	left := uint32(0)
	for _, m := range h.latest.Members {
		if o := h.at(m.Addr); o != s && o.whole && o.forged == nil && o.Set().Identity == m.Identity {
			left |= 1 << m.Number
		}
	}
	member := slices.ContainsFunc(h.latest.Members, func(m nodeset.Member) bool { return h.at(m.Addr) == s })
	return member && h.latest.Quorums().Met(left)
}

// runRegister has an operator put what is to follow, or read what was decided
// if next is nil. It may die before all servers have it.
func (h *history) runRegister(of, next *nodeset.Configuration) (found *nodeset.Configuration, read bool) {
	var there []*server
	var newest nodeset.RecordedNext
	members := deciders(of)
	for _, k := range h.rand.Perm(len(members)) {
		s := h.at(members[k].Addr)
		if s.up && s.whole && s.forged == nil && s.Set().Identity == members[k].Identity && !h.one(4) {
			there = append(there, s)
			if n := s.next[of.Stamp]; n.Version.Compare(newest.Version) > 0 {
				newest = n
			}
		}
	}
	if 2*len(there) <= len(members) {
		return nil, false
	}
	if newest.Config != nil {
		next = newest.Config
	}
	if next == nil {
		return nil, true
	}
	h.versions++
	if h.one(3) {
		there = there[:h.rand.IntN(len(there)+1)]
	}
	for _, s := range there {
		s.next[of.Stamp] = nodeset.RecordedNext{Of: of.Stamp, Version: protocol.Version{Seq: h.versions}, Config: next}
	}
	h.learn(of)
	if 2*len(there) <= len(members) {
		return nil, false
	}
	return next, false
}

// learn finds out what was decided to follow: a majority has it of one version,
// by one run or by that and a repair.
func (h *history) learn(of *nodeset.Configuration) {
	members, have := deciders(of), map[protocol.Version]int{}
	for _, m := range members {
		if s := h.at(m.Addr); s.Set().Identity == m.Identity && s.next[of.Stamp].Config != nil {
			n := s.next[of.Stamp]
			if have[n.Version]++; 2*have[n.Version] > len(members) {
				h.decides(of.Stamp, n.Config)
			}
		}
	}
}

// draw draws a change of the set.
func (h *history) draw() (ch change.Goal) {
	for _, m := range h.on.Members {
		if h.one(3) && len(ch.Remove)+1 < len(h.on.Members) {
			ch.Remove = append(ch.Remove, m.Addr)
		}
	}
	for _, a := range places {
		if s := h.at(a); h.on.Place(a) < 0 && s.forged == nil && h.one(3) && len(ch.Add) < 2 {
			ch.Add = append(ch.Add, nodeset.Member{Identity: fmt.Sprint("id", h.fresh()), Addr: a})
		}
	}
	return ch
}

// operate has the operator go on.
func (h *history) operate(goal func() change.Goal) {
	p := h.operator
	if p.Config() == nil {
		return
	}
	if h.exchange == nil {
		h.on = p.Config()
		h.exchange = &change.Exchange{Goal: goal(), Undo: h.one(6)}
		h.exchange.Decided(h.on)
	} else if p.Config().Stamp.Compare(h.on.Stamp) > 0 {
		h.on = p.Config()
		h.exchange.Decided(h.on)
	}
	e := h.exchange
	for i, m := range h.on.Members {
		s := h.at(m.Addr)
		switch has := s.Set(); {
		case !s.up || s.forged != nil || has.Identity != m.Identity:
			e.Silent(h.time(), i)
		case has.Stamp() == h.on.Stamp && has.Phase == nodeset.SetRecorded:
			if e.Saves(i) && h.one(2) {
				s.file = has
			}
			e.Moved(h.time(), h.time(), i, s.file.Stamp() == h.on.Stamp)
			e.Looked(i, s.Recovering(h.now) == 0, s.whole)
		}
	}
	next, ask := e.Propose(h.time(), ballot(h.fresh()))
	if ask {
		if found, read := h.runRegister(h.on, next); found != nil {
			h.on = found
			p.Decide(found)
			p.act()
			e.Decided(found)
		} else if read && next == nil {
			e.Read()
		}
	}
	if e.Outcome() != change.ExchangeGoesOn {
		h.exchange = nil
	}
}

// vote has a member be asked for its vote.
func (h *history) vote(l *locker, k int) {
	s := l.conns[k]
	if s == nil || !s.up || l.Verdict(k).Fault != nodeset.SetFits {
		return
	}
	has := s.shows()
	inc, marked := s.Incarnation()
	if has.Stamp() != l.Stamp() || has.Phase != nodeset.SetRecorded || !marked {
		l.Refused(k)
		l.act()
		return
	}
	if s.forged == nil && s.Recovering(h.now) == 0 && (s.vote.claim == l.claim || s.vote.inc != inc || s.vote.until <= h.now) {
		s.vote = vote{l.claim, inc, h.now + historyLease}
		l.votes[k] = s.vote
	}
}

// until returns when the claim is lost, if no node votes again.
func (l *locker) until(now int64) int64 {
	end := l.kept
	for _, v := range l.votes {
		live := uint32(0)
		for k, o := range l.votes {
			if o.until >= v.until {
				live |= 1 << k
			}
		}
		if l.sets.All() != 0 && l.sets.Met(live) {
			end = max(end, v.until)
		}
	}
	return end
}

// check has the claims learn what counts, and looks for what is wrong.
func (h *history) check() string {
	named := map[string]bool{}
	known := map[nodeset.Stamp]bool{"": true}
	for _, c := range h.decided {
		known[c.Stamp] = true
		for _, a := range c.Addrs() {
			named[a] = true
		}
	}
	holders := 0
	for i, l := range h.clients {
		if l.Stamp() != l.counted {
			l.kept = l.until(h.now)
			g := l.Group()
			l.counted, l.sets = l.Stamp(), g.Sets
			for k := range l.votes {
				if g.Reassigned&(1<<k) != 0 {
					delete(l.votes, k)
				}
			}
		}
		if !known[l.Stamp()] {
			return fmt.Sprintf("client %d counts on %s, which was not decided", i, l.Stamp())
		}
		for a := range l.dialled {
			if !named[a] {
				return fmt.Sprintf("client %d dials %s", i, a)
			}
		}
		if l.until(h.now) > h.now {
			holders++
		}
	}
	if holders > 1 {
		return "two holders"
	}
	return h.fault
}

// forge has a server show a configuration of its own: the same one in all of a
// history, as a client may remember what it has shown.
func (h *history) forge() {
	s := h.at(h.liar)
	has := s.Set()
	if s.forged != nil {
		s.forged = nil
	} else if has.Config != nil && has.Phase == nodeset.SetRecorded && h.spares(s) {
		c := *has.Config
		c.Stamp, c.Stage = nodeset.StampOf(uint64(90+h.rand.IntN(9)), ballot(h.fresh())), nodeset.Stable
		c.Members = []nodeset.Member{{Number: 0, Identity: has.Identity, Addr: "Y"}}
		if h.one(2) {
			c.Origin = c.Stamp
		}
		forged := recordedAs(&c, has.Identity)
		s.forged = &forged
	}
	h.cut(s)
}

// cut ends the connections to a server.
func (h *history) cut(s *server) {
	for _, p := range []*party{h.clients[0].party, h.clients[1].party, h.operator} {
		for i, o := range p.conns {
			if o == s {
				p.drop(i)
				p.act()
			}
		}
	}
}

// restart has a server come back with its file, which may be old.
func (h *history) restart(s *server) {
	if s.forged != nil || s.Set().Config == nil || s.file.Config == nil || !h.spares(s) {
		return
	}
	h.say("%q comes back with %s", s.Set().Identity, s.file.Stamp())
	h.keep(s, s.file)
	s.next, s.whole = map[nodeset.Stamp]nodeset.RecordedNext{}, false
	h.cut(s)
}

// step has something happen.
func (h *history) step() {
	i := h.rand.IntN(2)
	l := h.clients[i]
	p := l.party
	if h.one(3) {
		p = h.operator
	}
	switch n := h.rand.IntN(40); {
	case n < 12:
		if all := p.numbers(); len(all) > 0 {
			p.connect(all[h.rand.IntN(len(all))])
		}
	case n < 16:
		if len(p.asks) > 0 {
			p.answer()
		}
	case n < 24:
		for range 3 {
			h.vote(l, h.rand.IntN(12))
		}
	case n < 27:
		h.now += int64(h.rand.IntN(historyGuard))
	case n < 33:
		h.operate(h.draw)
	case n < 34: // the operator dies
		h.operator, h.exchange = h.start(h.lists[len(h.lists)-1]...), nil
	case n < 35:
		if h.one(3) {
			h.begin(i)
		} else if h.one(2) { // it sleeps
			for k := range l.conns {
				p.drop(k)
			}
		}
	default:
		h.trouble(n, h.server())
	}
}

// trouble has something happen to a server.
func (h *history) trouble(n int, s *server) {
	switch {
	case n < 36:
		if s.up = !s.up; !s.up {
			h.cut(s)
		}
	case n < 37:
		if s.file = s.Set(); h.one(2) {
			h.restart(s)
		}
	case n < 38:
		h.forge()
	case n < 39:
		if s.forged == nil && s.Set().Config != nil && h.spares(s) {
			h.say("%q loses its data", s.Set().Identity)
			file := s.file
			for a, o := range h.servers {
				if o == s {
					h.lose(a)
				}
			}
			s.file = file
			h.cut(s)
		}
	default:
		h.repairs(s)
	}
}

// repairs brings a server that votes what the others have.
func (h *history) repairs(s *server) {
	if c := s.Set().Config; c != nil && s.up && s.forged == nil && s.Recovering(h.now) == 0 {
		h.repair(s, c)
		for next := h.decided[""]; next != nil; next = h.decided[next.Stamp] {
			h.learn(next)
		}
	}
}

// calm has all servers run and show what they keep, and the change be ended.
// Then each client comes to use all members. One that cannot find the set by
// what it knows starts again.
func (h *history) calm() string {
	for _, a := range places {
		s := h.at(a)
		s.up, s.forged = true, nil
		h.cut(s)
	}
	h.say("a quiet time begins")
	h.operator, h.exchange = h.start(h.lists[len(h.lists)-1]...), nil
	f := &findings.Findings{}
	for range 60 {
		h.now += historyGuard
		for _, p := range []*party{h.operator, h.clients[0].party, h.clients[1].party} {
			for i := range p.conns { // what does not count is tried again
				if p.conns[i] != nil && p.Addr(i) != "" && p.Verdict(i).Fault != nodeset.SetFits {
					p.drop(i)
				}
			}
			p.settle(f)
		}
		h.operate(func() change.Goal { return change.Goal{} })
		for _, a := range places {
			h.repairs(h.at(a))
		}
		for k := range 2 * 32 {
			h.vote(h.clients[k%2], k/2)
		}
		if fault := h.check(); fault != "" {
			return fault
		}
	}
	for i, l := range h.clients {
		l.settle(f)
		if !h.finds(l) {
			l.party = h.start(h.lists[len(h.lists)-1]...)
			l.settle(f)
		}
		if l.Stamp() != h.latest.Stamp || len(l.party.votes()) != len(h.latest.Members) {
			return fmt.Sprintf("client %d with %v counts on %s and uses %v, not %s with %v", i, l.List(), l.Stamp(), l.party.votes(), h.latest.Stamp, h.latest.Addrs())
		}
	}
	if f.N > 0 {
		return "a client connects again and again"
	}
	return ""
}

// finds reports whether enough servers of what a client knows are of its set.
func (h *history) finds(l *locker) bool {
	know := func(addrs []string) bool {
		n := 0
		for _, a := range addrs {
			if c := h.at(a).Set(); c.Config != nil && c.Stamp() == h.latest.Stamp {
				n++
			}
		}
		return 2*n > len(addrs)
	}
	return know(l.List()) || l.Config() != nil && l.Stamp() == h.latest.Stamp
}

func (h *history) play(length int) (fault string) {
	for range length {
		h.step()
		if fault := h.check(); fault != "" {
			return fault
		}
	}
	return h.calm()
}

// histories plays some histories until one goes wrong, and prints that one.
func histories(t assert.TestingT, first uint64, n int) {
	for s := first; s < first+uint64(n); s++ {
		h := newHistory(s)
		if fault := h.play(150); fault != "" || *seeds == 1 {
			t.Errorf("history %d: %s\n%s", s, fault, strings.Join(h.lines, "\n"))
			return
		}
	}
}

func TestHistories(t *testing.T) {
	t.Parallel()
	const parts = 4 // run at once
	for p := range parts {
		from, to := p**seeds/parts, (p+1)**seeds/parts
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			t.Parallel()
			histories(t, *seed+uint64(from), to-from)
		})
	}
}
