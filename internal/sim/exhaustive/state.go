//go:build search

package exhaustive

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// States, and how a state changes when a claim acts. What can happen in a state
// is in action.go.

// space interns the parts that states are made of. A state is then a few
// numbers, and what one part does on one event is computed once and looked up
// ever after: that, and not a fast clone, is what makes the search fit.
type space struct {
	traffic
	claimParts
	nodeParts
}

func newSpace(cfg Config) *space {
	x := &space{traffic: traffic{
		cfg: cfg, msgs: make([]message, 1), msgIDs: map[message]msgID{}, older: make([]msgID, 1),
		links: make([]linkPart, 1), linkIDs: map[link]uint32{{}: 0},
		cols: make([]column, 1), colIDs: map[column]uint32{},
	}}
	x.claimParts = claimParts{
		traffic: &x.traffic, mutant: cfg.Mutant || cfg.Off != 0, client: cfg.client(&x.clock),
		claims: make([]claimPart, 1), claimIDs: map[string]uint32{}, moves: map[claimEvent]claimMove{},
	}
	x.nodeParts = nodeParts{traffic: &x.traffic, nodes: make([]nodePart, 1), nodeIDs: map[string]uint32{},
		visits: map[nodeEvent]nodeMove{}}
	return x
}

// state is everything, in numbers of a space.
type state struct {
	claims [maxClaims]uint32
	cols   [nodes]uint32
	left   budget
}

// budget is what may still go wrong, and the units since each claim's start
// for as long as a claim's T0 depends on it.
type budget struct {
	fails, cuts, repeats, beats, restarts, pauses, gains, units, drops, stops uint8
	since                                                                     [maxClaims]uint8
}

const unbounded = 255

func bound(n int) uint8 {
	if n == Unbounded {
		return unbounded
	}
	return uint8(n)
}

func spend(n *uint8) {
	if *n != unbounded {
		*n--
	}
}

func (x *space) root() state {
	c := x.col(column{node: x.fresh()})
	s := state{
		cols: [nodes]uint32{c, c, c},
		left: budget{
			fails: bound(x.cfg.Fails), cuts: bound(x.cfg.Cuts),
			repeats: bound(x.cfg.Repeats), beats: bound(x.cfg.Beats),
			restarts: bound(x.cfg.Restarts), pauses: bound(x.cfg.Pauses),
			gains: bound(x.cfg.Gains), units: bound(x.cfg.Units),
			drops: bound(x.cfg.Drops), stops: bound(x.cfg.Stops),
		},
	}
	for _, p := range x.cfg.Apart {
		x.setLink(&s, uint8(p[0]), uint8(p[1]), link{cut: true})
	}
	return s
}

func (x *space) linkOf(s *state, claim, node uint8) link {
	return x.links[x.cols[s.cols[node]].links[claim]].link
}

func (x *space) setLink(s *state, claim, node uint8, l link) {
	c := x.cols[s.cols[node]]
	c.links[claim] = x.link(l)
	s.cols[node] = x.col(c)
}

// canonical renames the nodes so that states which differ in names only become
// one.
func (x *space) canonical(s state) state {
	best := s
	for o, order := range orders[1:] {
		if !x.interchangeable(s, order) {
			continue
		}
		t := s
		for i, from := range order {
			t.cols[i] = s.cols[from]
		}
		if slices.Compare(t.cols[:], best.cols[:]) > 0 {
			continue
		}
		for i := range t.claims {
			t.claims[i] = x.renamed(s.claims[i], o+1)
		}
		if slices.Compare(t.cols[:], best.cols[:]) < 0 || slices.Compare(t.claims[:], best.claims[:]) < 0 {
			best = t
		}
	}
	return best
}

// interchangeable: the names of the nodes may change. A claim that has not
// started is yet to defer nodes by their names, so these must stay the same
// nodes. Without that the claim would defer another node than the world says,
// and fewer states would be searched than there are.
func (x *space) interchangeable(s state, order [nodes]int) bool {
	for i, p := range x.cfg.Claims {
		if s.claims[i] != 0 {
			continue
		}
		for to, from := range order {
			if p.Later>>to&1 != p.Later>>from&1 {
				return false
			}
		}
	}
	return true
}

// open reports whether anything can still go wrong from here: claims that may
// yet hold do not all fit, or one may yet be admitted after one with a higher
// ticket. A claim's ticket only rises, so a claim above all that were admitted
// before is no danger. The rest of the futures need not be looked at. (Raises
// leaves out more, and is a bound like the others.)
func (x *space) open(s state) bool {
	var weight uint64
	for i, p := range x.cfg.Claims {
		c := &x.claims[s.claims[i]]
		if x.cfg.Raises != Unbounded && c.ticket > base+protocol.Residues*protocol.Ticket(x.cfg.Raises+1) {
			return false
		}
		if !c.final {
			weight += p.Weight
			if x.tokens() && x.topAdmitted(s) >= c.ticket && x.topAdmitted(s) > 0 {
				return true
			}
		}
	}
	return weight > x.cfg.Capacity
}

// topAdmitted is the highest ticket of a claim that has ever been admitted.
func (x *space) topAdmitted(s state) protocol.Ticket {
	var top protocol.Ticket
	for _, id := range s.claims {
		if c := &x.claims[id]; c.admitted {
			top = max(top, c.ticket)
		}
	}
	return top
}

// tokens reports whether tokens are to rise: where claims exclude each other,
// and clocks are bounded.
func (x *space) tokens() bool { return x.cfg.Capacity == 1 && x.cfg.Skew != Unbounded }

// happen lets claim i move, and returns what is wrong then.
func (x *space) happen(s *state, i uint8, e claimEvent) string {
	e.claim = s.claims[i]
	if e.kind == evStart {
		e.slot = i
	}
	for z := range uint8(nodes) {
		if l := x.linkOf(s, i, z); l.cut {
			e.cut |= 1 << z
		} else if l.full {
			e.full |= 1 << z
		}
	}
	top := x.topAdmitted(*s)
	m := x.move(e)
	s.claims[i] = m.claim
	for _, out := range m.sent {
		if l := x.linkOf(s, i, out.node); !l.cut {
			add(l.requests[:], out.msg)
			x.setLink(s, i, out.node, l)
		}
	}
	if x.claims[m.claim].final {
		// What travels to a claim that has ended is of no use.
		for z := range s.cols {
			c := x.cols[s.cols[z]]
			c.links[i] = x.become(c.links[i], ends)
			s.cols[z] = x.col(c)
		}
	}
	if m.wrong != "" {
		return name(int(i)) + " " + m.wrong
	}
	if wrong := x.overCapacity(*s); wrong != "" {
		return wrong
	}
	if m.admitted && x.tokens() && x.claims[m.claim].ticket <= top {
		return "tokens do not rise"
	}
	for _, out := range m.sent {
		if !x.claims[s.claims[i]].final && x.linkOf(s, i, out.node).cut {
			if wrong := x.happen(s, i, claimEvent{kind: evFail, node: out.node, msg: out.msg}); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// overCapacity reports more valid holders than there is room for.
func (x *space) overCapacity(s state) string {
	var weight uint64
	for i, p := range x.cfg.Claims {
		if x.claims[s.claims[i]].valid {
			weight += p.Weight
		}
	}
	if weight > x.cfg.Capacity {
		return "too many valid holders"
	}
	return ""
}

// arrive lets node z take a request of claim i.
func (x *space) arrive(s *state, i, z uint8, m msgID) {
	if x.msgs[m].op == protocol.OpBeat {
		spend(&s.left.beats)
	}
	c := x.cols[s.cols[z]]
	v := x.visit(nodeEvent{node: c.node, claim: i, msg: m})
	c.node = v.node
	if x.msgs[m].op != protocol.OpLeave && !x.claims[s.claims[i]].final {
		l := x.links[c.links[i]].link
		add(l.answers[:], v.answer)
		c.links[i] = x.link(l)
	}
	for _, p := range v.pushes {
		l := x.links[c.links[p.claim]].link
		if !l.cut && !x.claims[s.claims[p.claim]].final && !slices.Contains(l.pushes[:], p.msg) &&
			slices.Contains(l.pushes[:], 0) {
			put(l.pushes[:], p.msg)
			c.links[p.claim] = x.link(l)
		}
	}
	s.cols[z] = x.col(c)
}

// changeAll changes every link of a state.
func (x *space) changeAll(s *state, c change) {
	for z := range s.cols {
		part := x.cols[s.cols[z]]
		for i := range part.links {
			part.links[i] = x.become(part.links[i], c)
		}
		s.cols[z] = x.col(part)
	}
}
