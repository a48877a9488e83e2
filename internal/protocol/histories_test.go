package protocol_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// This file plays random histories of a set that one client follows. Servers
// are restarted and change their addresses with each other, a server comes back
// with a copy of another one's data, connections break, and an operator
// exchanges nodes. After each step a history checks what keeps two holders
// apart:
//
//   - each member has a number of its own
//   - a number with a vote reaches the server of the member for which it stands
//   - a view that a claim counts is that of this member
//   - two numbers never count one identity
//   - no server becomes a member whose own server runs at the member's address.
//
// Some histories end with a quiet time, in which each server is at its own
// address. Then the client uses all members.

var (
	seeds = flag.Int("seeds", 2000, "how many histories of a set to play")
	seed  = flag.Uint64("seed", 1, "the first history; with -seeds=1 it is printed")
)

const (
	historyLength = 45
	quietRounds   = 20
	numbers       = 32 // the bits of a client, one for each node that it has known
)

// server is one server of a history.
type server struct {
	name   string
	run    int
	up     bool
	copied bool // it has a copy of another server's data
	keeps  protocol.NodeSet
}

// runOf names the server's run, which a restart ends.
func (s *server) runOf() string { return fmt.Sprint(s.name, ".", s.run) }

// record has the server keep a configuration as one of its members.
func (s *server) record(c *protocol.Configuration, identity string) {
	s.keeps = protocol.NodeSet{Promised: ballot(0), Phase: protocol.SetRecorded, Identity: identity, Config: c}
	s.keeps.Text = s.keeps.String()
}

// views is what a client's claims count: for each number the identity of the
// node whose answer they have, empty for none.
type views struct {
	waiter, holder [numbers]string
	outside        [numbers]bool // the number was not known to be a member when the claims looked last
	unheard        [numbers]bool // the waiter's view is from then: the next answer makes it count
	former         [numbers]bool // the view is from before the present configuration
}

// history is one random history. The same seed gives the same history.
type history struct {
	rand    *rand.Rand
	lines   []string
	servers []*server
	home    map[string]*server // the server of an address
	leads   map[string]*server // the server to which the address leads now

	config  *protocol.Configuration // the latest that was decided
	ballots int
	words   int // so many identities and lives were made

	client *protocol.Membership
	conns  [numbers]*server
	views  views

	addresses []string
	copies    bool // servers are copied
	finds     bool // the client finds members at addresses that a newer list names
	quiet     bool // it ends with a quiet time
	named     map[string]bool
	seen      map[string]*server // the last one with data that the client has met at an address
	over      bool               // what follows would show nothing
	fault     string
}

var addresses = []string{"A", "B", "C", "D", "E", "F"}

// newHistory has a set of A, B and C, which the client's list names. D, E and F
// are empty servers.
func newHistory(seed uint64, rules protocol.Rules, addresses ...string) *history {
	h := &history{addresses: addresses, rand: rand.New(rand.NewPCG(seed, 7)), home: map[string]*server{}, leads: map[string]*server{}, named: map[string]bool{}, seen: map[string]*server{}, ballots: 10}
	// A copy of a member's data may keep a client from using the member, so a
	// history with copies has no quiet end.
	h.quiet = seed%3 == 0
	h.copies, h.finds = seed%3 == 1, !h.quiet
	h.config = setOf(1, addresses[:3]...)
	for k, addr := range h.addresses {
		s := &server{name: "server " + addr, up: true}
		if k < len(h.config.Members) {
			s.record(h.config, h.config.Members[k].Identity)
		}
		h.servers = append(h.servers, s)
		h.home[addr], h.leads[addr] = s, s
	}
	h.client = protocol.NewMembership(addresses[:3], rules)
	h.client.Exchanges = true
	return h
}

func (h *history) say(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

// word makes an identity or a life that no server has had.
func (h *history) word(kind string) string {
	h.words++
	return fmt.Sprint(kind, h.words)
}

// one returns true once in n times.
func (h *history) one(n int) bool { return h.rand.IntN(n) == 0 }

func (h *history) number() int { return h.rand.IntN(max(3, h.client.Group().Nodes)) }

func (h *history) address() string { return h.addresses[h.rand.IntN(len(h.addresses))] }

func (h *history) server() *server { return h.servers[h.rand.IntN(len(h.servers))] }

// member returns the server that has the data of a member, nil for none. A copy
// is not that server.
func (h *history) member(identity string) *server {
	for _, s := range h.servers {
		if !s.copied && s.keeps.Identity == identity {
			return s
		}
	}
	return nil
}

// steps are what may happen next.
type steps[T any] []struct {
	weight int // a step is as likely as that
	happen func(T)
}

// draw draws a step.
func (s steps[T]) draw(r *rand.Rand) func(T) {
	all := 0
	for _, one := range s {
		all += one.weight
	}
	n := r.IntN(all)
	for _, one := range s {
		if n -= one.weight; n < 0 {
			return one.happen
		}
	}
	panic("no step has a weight")
}

var historySteps = steps[*history]{
	{6, func(h *history) { h.connect(h.number()) }},
	{2, func(h *history) { h.answer(h.number()) }},
	{1, func(h *history) { h.breakConnection(h.number()) }},
	{1, (*history).swapAddresses},
	{1, (*history).restoreAddresses},
	{2, (*history).operate},
	{1, (*history).restart},
	{1, (*history).copyData},
	{1, (*history).discover},
}

// settle does what the client asks for after an event. by is the number whose
// connection begins, -1 for none.
func (h *history) settle(by int) {
	out := h.client.Out
	h.client.Out = nil
	h.exclude()
	for _, a := range out {
		s := h.conns[a.Node]
		switch {
		case a.Reconnect, a.Cease:
			if a.Node != by || a.Cease {
				h.disconnect(a.Node)
			}
		case a.Begin:
		case a.Ask > 0:
			if s != nil && s.up && !h.one(4) {
				h.client.Told(a.Node, a.Ask, s.keeps)
				h.settle(-1)
			}
		case s != nil && a.Node == by:
			h.carryOut(s, a.RecordStep)
		}
	}
}

// exclude has the client's claims learn what the numbers stand for: see
// protocol.Claim.Exclude.
func (h *history) exclude() {
	outside, others, doubts := h.client.Outside(), h.client.Others(), h.client.Doubts()
	v := &h.views
	for i := range numbers {
		bit := uint32(1) << i
		if others&bit != 0 {
			v.waiter[i], v.holder[i] = "", ""
		}
		// A node in doubt was outside until now.
		for _, now := range []bool{(outside|doubts)&bit != 0, outside&bit != 0} {
			if v.outside[i] && !now && v.waiter[i] != "" {
				v.unheard[i] = true
			}
			v.outside[i] = now
		}
	}
}

// carryOut does at a server what the client has it record.
func (h *history) carryOut(s *server, x protocol.RecordStep) {
	switch x.Kind {
	case protocol.SetLife:
		if s.keeps.Config == nil && s.keeps.Life == "" {
			s.keeps.Life = h.word("life")
			s.keeps.Text = s.keeps.String()
		}
	case protocol.SetMove, protocol.SetCommit:
		if s.keeps.Config != nil && s.keeps.Identity == x.Identity && s.keeps.Config.Stamp.Epoch() <= x.Config.Stamp.Epoch() {
			h.say("%s moves to configuration %d", s.name, x.Config.Stamp.Epoch())
			s.record(x.Config, x.Identity)
		}
	case protocol.SetRestore:
		h.say("%s becomes %s again, of configuration %d", s.name, x.Identity, x.Config.Stamp.Epoch())
		h.checkPlace(s, x)
		if s.keeps.Text == x.Seen {
			s.record(x.Config, x.Identity)
		}
	}
}

// checkPlace checks that a server does not get the place of a member that is at
// its own address. The list of a user may have named the address as that of the
// member, though. Such a list is wrong once the address leads to another
// server, and the history ends. So it does where the address at which the
// member was seen leads to an empty server while the member runs: seed 9014251.
// docs/membership.md names both as limits.
func (h *history) checkPlace(s *server, x protocol.RecordStep) {
	own := x.Config.Members[x.Config.Member(x.Identity)].Addr
	o, at := h.member(x.Identity), h.client.Addr(x.Node)
	switch {
	case o == nil, o == s, !o.up, h.home[own] != o, at == own:
	case h.named[at], h.seen[at] == o && h.leads[own] != o:
		h.over = true
	default:
		h.fault = fmt.Sprintf("%s becomes %s, which is %s at its own address", s.name, x.Identity, o.name)
	}
}

// disconnect ends the connection of a number.
func (h *history) disconnect(i int) {
	if h.conns[i] != nil {
		h.conns[i] = nil
		h.client.Down(i)
	}
}

// disconnectServer ends the connections to a server.
func (h *history) disconnectServer(s *server) {
	for i := range numbers {
		if h.conns[i] == s {
			h.disconnect(i)
		}
	}
}

// disconnectAddress ends the connections to an address.
func (h *history) disconnectAddress(addr string) {
	for i := range numbers {
		if h.conns[i] != nil && h.client.Addr(i) == addr {
			h.disconnect(i)
		}
	}
}

// connect has a number connect, if the client wants it to and the server runs.
func (h *history) connect(i int) {
	if h.conns[i] != nil || !h.client.Wants(i) {
		return
	}
	s := h.leads[h.client.Addr(i)]
	if !s.up {
		return
	}
	for j := range numbers { // a client has one connection to a server
		if h.conns[j] == s {
			h.client.Same(i, j, s.runOf())
			h.settle(-1)
			return
		}
	}
	h.conns[i] = s
	if s.keeps.Config != nil {
		h.seen[h.client.Addr(i)] = s
	}
	fault := h.client.Met(i, s.runOf(), s.keeps).Fault
	h.say("number %d meets %s at %s, which shows %q of configuration %d: fault %d", i, s.name, h.client.Addr(i), s.keeps.Identity, s.keeps.Stamp().Epoch(), fault)
	h.settle(i)
	if h.conns[i] == nil {
		return
	}
	switch fault = h.client.Verdict(i).Fault; {
	case fault == protocol.SetFits && h.client.Judged(i), fault == protocol.SetPending, fault == protocol.SetLost:
	default:
		h.disconnect(i)
	}
}

// answer has a node answer the client's claims, if it serves requests for the
// client's configuration.
func (h *history) answer(i int) {
	s, c := h.conns[i], h.client.Config()
	if s == nil || c == nil || s.keeps.Stamp() != c.Stamp || h.client.Verdict(i).Fault != protocol.SetFits {
		return
	}
	v := &h.views
	v.former[i], v.unheard[i] = false, false
	v.waiter[i], v.holder[i] = s.keeps.Identity, s.keeps.Identity
}

func (h *history) breakConnection(i int) {
	h.say("the connection of number %d breaks", i)
	h.disconnect(i)
}

// swapAddresses has two addresses lead to each other's servers.
func (h *history) swapAddresses() {
	a, b := h.address(), h.address()
	h.say("%s and %s change places", a, b)
	h.leads[a], h.leads[b] = h.leads[b], h.leads[a]
	h.disconnectAddress(a)
	h.disconnectAddress(b)
}

// restoreAddresses has some addresses lead to their own servers again.
func (h *history) restoreAddresses() {
	for _, addr := range h.addresses {
		if h.one(2) && h.leads[addr] != h.home[addr] {
			h.say("%s leads to its own server again", addr)
			h.leads[addr] = h.home[addr]
			h.disconnectAddress(addr)
		}
	}
}

// restart ends a server, or starts it again with its data.
func (h *history) restart() {
	s := h.server()
	s.up = !s.up
	s.run++
	h.say("%s runs: %v", s.name, s.up)
	h.disconnectServer(s)
}

// copyData has a server that is no member come back with the data of another
// one.
func (h *history) copyData() {
	s, o := h.server(), h.server()
	if !h.copies || h.one(2) || s == o || o.keeps.Config == nil || h.config.Member(s.keeps.Identity) >= 0 {
		return
	}
	s.keeps, s.copied = o.keeps, true
	s.run++
	h.say("%s has a copy of the data of %s, %s", s.name, o.name, o.keeps.Identity)
	h.disconnectServer(s)
}

// discover has a newer list name an address.
func (h *history) discover() {
	addr := h.address()
	s := h.leads[addr]
	if !h.finds || h.client.Config() == nil || !h.one(4) || !s.up {
		return
	}
	if i := h.client.Moves(addr, s.keeps, []string{addr}); i >= 0 {
		h.say("number %d goes on at %s", i, addr)
		h.named[addr] = true
		h.disconnect(i)
		h.client.Move(i, addr, s.keeps)
		h.settle(-1)
	}
}

// operate has an operator decide the next configuration.
func (h *history) operate() {
	if next, undone := h.next(h.change, h.enter); next != nil {
		h.decide(next, undone)
	}
}

// next returns what an operator decides next, nil for nothing. change draws an
// exchange, and enter gives the members that enter their data.
func (h *history) next(change func() protocol.Change, enter func()) (next *protocol.Configuration, undone bool) {
	h.ballots++
	c, b := h.config, ballot(h.ballots)
	switch {
	case c.Stage == protocol.Stable:
		ch := change()
		if !c.Fits(ch) {
			return nil, false
		}
		next = c.Begin(ch, b)
	case h.one(5):
		next, undone = c.Undo(b), true
	case c.Stage == protocol.Learning:
		enter()
		next = c.Join(b)
	default:
		next = c.Finish(b)
	}
	h.say("the operator decides configuration %d: %v %v", next.Stamp.Epoch(), next.Stage, next.Addrs())
	return next, undone
}

// change draws an exchange at random. A server is added that is empty, or a
// node of the set from before at its own address.
func (h *history) change() (ch protocol.Change) {
	c := h.config
	for _, addr := range h.addresses {
		s := h.home[addr]
		if c.Place(addr) >= 0 {
			if h.one(3) && len(ch.Remove) < len(c.Members)-1 {
				ch.Remove = append(ch.Remove, addr)
			}
			continue
		}
		had := s.keeps.Config
		left := had != nil && !s.copied && c.Member(s.keeps.Identity) < 0 && had.Place(addr) >= 0 && had.Place(addr) == had.Member(s.keeps.Identity)
		if h.one(4) && len(c.Members)+len(ch.Add) < 5 && s.up && (had == nil || left) {
			ch.Add = append(ch.Add, protocol.Member{Identity: h.word("new"), Addr: addr})
		}
	}
	return ch
}

// enter gives the members that enter their data: no set counts them before
// that.
func (h *history) enter() {
	for _, m := range h.config.Members {
		if m.Role == protocol.Enters && h.member(m.Identity) == nil {
			s := h.home[m.Addr]
			s.copied = false
			s.record(h.config, m.Identity)
			h.disconnectServer(s)
		}
	}
}

// decide has the members take the configuration of before, and some the next
// one. What was said before the present configuration ends with a guard time,
// which passes before a new set counts.
func (h *history) decide(next *protocol.Configuration, undone bool) {
	was, v := h.config, &h.views
	for _, m := range was.Members {
		if s := h.member(m.Identity); s != nil && s.keeps.Config.Stamp.Epoch() < was.Stamp.Epoch() {
			s.record(was, m.Identity)
		}
	}
	waits := next.Stage == protocol.Jointly || next.Stage == protocol.Stable && !undone
	for i := range numbers {
		if waits && v.former[i] {
			v.waiter[i], v.holder[i] = "", ""
		}
		v.former[i] = v.holder[i] != ""
	}
	h.config = next
	for _, m := range next.Members {
		if s := h.member(m.Identity); s != nil && s.up && h.one(2) {
			s.record(next, m.Identity)
		}
	}
}

// check returns what is wrong, empty for nothing.
func (h *history) check() string {
	c := h.client.Config()
	if h.fault != "" || c == nil || c.Stamp.Epoch() == 1 {
		return h.fault
	}
	if h.client.Group().Nodes > numbers {
		return "the client has more numbers than bits"
	}
	var stands [numbers]string
	for k, m := range c.Members {
		i := h.client.Node(k)
		if stands[i] != "" {
			return fmt.Sprintf("%s and %s have number %d", stands[i], m.Identity, i)
		}
		stands[i] = m.Identity
		if fault := h.checkNumber(i, m.Identity); fault != "" {
			return fault
		}
	}
	return h.checkVotes()
}

// checkNumber checks what counts of the number that stands for a member.
func (h *history) checkNumber(i int, identity string) string {
	v := &h.views
	switch {
	case h.connected(i) && h.client.Has(i).Identity != identity:
		return fmt.Sprintf("number %d stands for %s and reaches %s, which is %s", i, identity, h.conns[i].name, h.client.Has(i).Identity)
	case v.waiter[i] != "" && v.waiter[i] != identity && !v.outside[i] && !v.unheard[i]:
		return fmt.Sprintf("a waiter counts the view of %s as that of %s, number %d", v.waiter[i], identity, i)
	case v.holder[i] != "" && v.holder[i] != identity:
		return fmt.Sprintf("a holder counts the view of %s as that of %s, number %d", v.holder[i], identity, i)
	}
	return ""
}

// connected reports whether a number is connected to a server that the client
// takes for a member.
func (h *history) connected(i int) bool {
	return h.conns[i] != nil && h.client.Outside()&(1<<i) == 0 && h.client.Judged(i)
}

// checkVotes checks that no identity has two votes.
func (h *history) checkVotes() string {
	votes := map[string]int{}
	for i := range numbers {
		if !h.connected(i) || h.client.Member(i) < 0 || h.client.Verdict(i).Fault != protocol.SetFits {
			continue
		}
		id := h.conns[i].keeps.Identity
		if j, found := votes[id]; found {
			return fmt.Sprintf("numbers %d and %d count %s", j, i, id)
		}
		votes[id] = i
	}
	return ""
}

// calm begins a quiet time: the exchange has ended, every member runs at its
// own address with the latest configuration, and all connections have ended.
func (h *history) calm() {
	h.say("a quiet time begins")
	if h.config.Stage == protocol.Learning {
		h.ballots++
		h.config = h.config.Join(ballot(h.ballots))
	}
	if h.config.Stage == protocol.Jointly {
		h.ballots++
		h.config = h.config.Finish(ballot(h.ballots))
	}
	for i := range numbers {
		h.disconnect(i)
	}
	for _, addr := range h.addresses {
		s := h.home[addr]
		h.leads[addr], s.up = s, true
		s.run++
	}
	for _, m := range h.config.Members {
		if s := h.member(m.Identity); s != nil && s != h.home[m.Addr] {
			s.keeps = protocol.NodeSet{}
		}
		h.home[m.Addr].record(h.config, m.Identity)
	}
}

// serves returns what keeps the client from using all members, empty for
// nothing.
func (h *history) serves() string {
	c := h.client.Config()
	switch {
	case c == nil:
		return "the client knows no set"
	case c.Stamp != h.config.Stamp:
		return "the client does not follow the set"
	case h.client.Wrong().Fault != protocol.SetFits:
		return "the client's list is refused"
	case c.Stamp.Epoch() == 1:
		return ""
	}
	for k, m := range c.Members {
		if i := h.client.Node(k); !h.connected(i) && h.home[m.Addr].up {
			return fmt.Sprintf("the client does not use %s at %s, number %d: fault %d", m.Identity, m.Addr, i, h.client.Verdict(i).Fault)
		}
	}
	return ""
}

// play plays the history and returns what goes wrong, empty for nothing.
func (h *history) play() (fault string) {
	defer func() {
		if p := recover(); p != nil {
			fault = fmt.Sprint("panic: ", p)
		}
	}()
	for range historyLength {
		if historySteps.draw(h.rand)(h); h.over {
			return ""
		}
		if fault := h.check(); fault != "" {
			return fault
		}
	}
	if !h.quiet {
		return ""
	}
	h.calm()
	for range quietRounds {
		for i := range max(3, h.client.Group().Nodes) {
			if !h.one(3) {
				h.connect(i)
			}
			if fault := h.check(); fault != "" {
				return fault
			}
		}
	}
	return h.serves()
}

// histories plays the histories of some seeds until one of them goes wrong, and
// prints that one.
func histories(t assert.TestingT, rules protocol.Rules, first uint64, n int) {
	for s := first; s < first+uint64(n); s++ {
		h := newHistory(s, rules, addresses...)
		if fault := h.play(); fault != "" {
			t.Errorf("history %d: %s\n%s", s, fault, strings.Join(h.lines, "\n"))
			return
		}
	}
}

func TestHistories(t *testing.T) {
	t.Parallel()
	histories(t, protocol.Rules{}, *seed, *seeds)
	if *seeds == 1 {
		h := newHistory(*seed, protocol.Rules{}, addresses...)
		_ = h.play()
		t.Log(strings.Join(h.lines, "\n"))
	}
}
