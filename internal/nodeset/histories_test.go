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
	h := &history{world: newWorld(), rand: rand.New(rand.NewPCG(seed, 7)),
		decided: map[nodeset.Stamp]*nodeset.Configuration{}}
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
	if s.forged == nil && s.Recovering(h.now) == 0 &&
		(s.vote.claim == l.claim || s.vote.inc != inc || s.vote.until <= h.now) {
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
			return fmt.Sprintf("client %d with %v counts on %s and uses %v, not %s with %v", i, l.List(), l.Stamp(),
				l.party.votes(), h.latest.Stamp, h.latest.Addrs())
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
