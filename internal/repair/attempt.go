package repair

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// Bounds of what one node may list. A node whose cursor never returns to 0
// would otherwise fill this process's memory, or keep it busy.
const (
	maxNameBytes = 128 << 20 // of all names, with perName for each
	perName      = 64
	maxPortions  = 100_000 // of at least 1,000 keys each, on a server that is not broken
)

// repairBatch is the most names that are copied at a time: with all at once the
// node's connection would break.
const repairBatch = 64

var (
	// ErrEndless is why the names of a node are not used.
	ErrEndless = fmt.Errorf("lists more than %d MB of names, or its list never ends", maxNameBytes>>20)
	// ErrLostMeanwhile is why what a node has listed does not count.
	ErrLostMeanwhile = errors.New("lost its data or restarted while it listed names")
	// ErrUndecided is why a name cannot be brought to a node while its register
	// is undecided.
	ErrUndecided = errors.New("the record is undecided")

	errNoMember = errors.New("is not a member of the set")
	// errLater ends an attempt that has not failed: the next one follows.
	errLater = errors.New("another time")
)

// TooFew is the error of an attempt that could not list names because too few
// of the other nodes can be asked.
type TooFew struct {
	Nodes []error // per node: why it cannot be; nil: it can
}

func (*TooFew) Error() string { return "too few of the other nodes can be asked" }

// Attempt is one attempt to repair a node. Run performs it, and Repair.Ended
// takes the result.
type Attempt struct {
	Node int

	turn      time.Duration // how long the turn lasts, unless it is prolonged
	over      atomic.Bool   // the node's connection has ended, or Close has begun
	left      atomic.Int64  // names to be brought, -1 while they are being listed
	known     progress
	caughtUp  bool
	marked    bool // this attempt has marked the node
	err       error
	permanent bool
	wait      time.Duration // for the end of the guard time
}

// progress is what an attempt leaves behind for the next one: the names it has
// listed, and which of them it has not copied yet.
// Invariant: the names belong to one incarnation. A name that was copied in an
// earlier incarnation has been lost again (repair-begins-again.txt).
//
// Invariant: and to one configuration. In Learning they are listed by nodes that
// leave, which need not have what is recorded once the node counts.
type progress struct {
	incarnation protocol.Incarnation
	home        string // see Marker
	listed      bool
	names       []string // that are not brought yet
	total       int
	batch       int // names at a time
}

// peer is another node that may know what the node has forgotten.
type peer struct {
	Marker
	err    error
	listed bool
}

// Spare replaces Run if the node lacks nothing.
func (a *Attempt) Spare() { a.caughtUp = true }

// Run performs the attempt.
func (a *Attempt) Run(io IO) { a.err = a.repair(io) }

// repair looks at the node, takes the turn, lists the other nodes' names,
// copies the names to the node, and marks it as caught up.
//
// It lists names only after the node's guard time. Before that, the other nodes
// may accept more that depends on what the node forgot.
//
// Invariant: the mark names the incarnation and the configuration that was
// repaired, so a node that has lost its data or moved since ignores it.
func (a *Attempt) repair(io IO) error {
	m, err := io.Look(a.Node, true)
	if err != nil || m.CaughtUp {
		a.caughtUp = err == nil
		return a.refused(io, err)
	}
	if a.begin(&m); a.wait > 0 { //mutant:RuleRepairGuard
		return errLater
	}
	a.wait = 0
	ours, err := io.TakeTurn(a.turn)
	if err != nil {
		return a.refused(io, err)
	}
	if !ours { //mutant:RuleRepairTurns
		return errLater // all clients at once would only be slower
	}
	defer io.YieldTurn()
	// This happens halfway through the turn, so that a request that takes a whole
	// node timeout still arrives before the turn ends.
	a.left.Store(-1)
	defer io.Every(a.turn/2, func() { io.Prolong(a.turn, int(a.left.Load())) })()
	if !a.known.listed {
		if err := a.list(io, m.Kept); err != nil {
			return err
		}
	}
	for a.skip(io); len(a.known.names) > 0; a.skip(io) {
		if err := a.bring(io); err != nil {
			return err
		}
	}
	if invariant.On {
		invariant.Check(a.known.listed && len(a.known.names) == 0,
			"a node is marked when it has every name that was listed")
		invariant.Check(a.known.incarnation == m.Incarnation, "the mark names the incarnation that was repaired")
	}
	a.marked, err = io.Mark(a.known.incarnation, a.known.home)
	if a.caughtUp = a.marked; err == nil && !a.marked { // it has lost its data again, or has moved
		return errLater
	}
	return a.refused(io, err)
}

// begin continues with what an earlier attempt listed in this incarnation and
// configuration.
func (a *Attempt) begin(m *Marker) {
	k := &a.known
	if m.Home != k.home {
		k.listed = false //mutant:RuleRepairHome
	}
	if m.Incarnation != k.incarnation {
		k.listed, k.names, k.batch = false, nil, 0 //mutant:RuleRepairRestart
	}
	k.incarnation, k.home = m.Incarnation, m.Home
	if k.batch == 0 {
		k.batch = maxBatch()
	}
	a.wait = m.Wait
}

// refused records whether the node being repaired will refuse the next attempt,
// too.
func (a *Attempt) refused(io IO, err error) error {
	a.permanent = err != nil && io.Permanent(err)
	return err
}

// list lists the names of the other nodes, one node after the other. Unless q
// nodes are caught up, all of them must be asked: the one that cannot be asked
// may be the only one that knows a name.
func (a *Attempt) list(io IO, kept bool) error {
	g := io.Group()
	others, all := make([]peer, max(g.Nodes, a.Node+1)), g.Sets.All()
	io.Each(len(others), func(io IO, j int) {
		p := &others[j]
		if p.err = errNoMember; j != a.Node && all&(1<<j) != 0 {
			p.Marker, p.err = io.Look(j, false)
		}
	})
	found := map[string]struct{}{}
	for {
		next, caughtUp, able := -1, uint32(0), uint32(0)
		for j := range others {
			p := &others[j]
			if p.err != nil {
				continue
			}
			if able |= 1 << j; p.CaughtUp {
				caughtUp |= 1 << j
			}
			if !p.listed && next < 0 {
				next = j
			}
		}
		switch {
		case a.over.Load():
			return errLater
		case !lease.CanListNames(io.Group().Sets, a.Node, kept, caughtUp, able):
			lacking := make([]error, len(others))
			for j := range others {
				lacking[j] = others[j].err
			}
			lacking[a.Node] = nil // it is not one of the others
			return &TooFew{lacking}
		case next < 0:
			a.known.listed, a.known.names, a.known.total = true, slices.Sorted(maps.Keys(found)), len(found)
			return nil
		}
		others[next].err = a.listNode(io, next, &others[next].Marker, found)
		others[next].listed = true
	}
}

// listNode adds the names of one node to found.
// Invariant: a node's list counts only if its incarnation and its run are the
// same before the first portion and after the last one (repair-steady.txt).
// Otherwise some names may be missing. Besides, a cursor means nothing to
// another run.
func (a *Attempt) listNode(io IO, node int, before *Marker, found map[string]struct{}) error {
	size := 0
	for portions, cursor := 1, "0"; !a.over.Load(); portions++ {
		names, next, err := io.List(node, cursor)
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, known := found[name]; !known {
				found[name] = struct{}{}
				size += len(name) + perName
			}
		}
		if portions >= maxPortions || size > maxNameBytes {
			return ErrEndless
		}
		if cursor = next; cursor == "0" {
			break
		}
	}
	after, err := io.Look(node, false)
	if err == nil && (after.Incarnation != before.Incarnation || after.Run != before.Run) { //mutant:RuleRepairSteady
		err = ErrLostMeanwhile
	}
	return err
}

// skip drops names that the node does not need. The nodes may have been
// exchanged since the names were listed.
func (a *Attempt) skip(io IO) {
	g := io.Group()
	a.known.names = slices.DeleteFunc(a.known.names, func(name string) bool {
		brings, _ := g.Brings(a.Node, name)
		return !brings //mutant:RuleRepairSuccession=false
	})
	a.left.Store(int64(len(a.known.names)))
}

// bring copies the next names to the node. Names that fail go behind the
// others, into the next attempt. If every name of a batch failed, the batch may
// have been too large (repair-portions.txt).
// Invariant: the node is marked only when no name is left, not even one that
// could not be read (repair-every-name.txt).
func (a *Attempt) bring(io IO) error {
	if a.over.Load() {
		return errLater
	}
	k := &a.known
	sent := k.names[:min(k.batch, len(k.names))]
	errs := make([]error, len(sent))
	io.Each(len(sent), func(io IO, j int) { errs[j] = a.bringName(io, sent[j]) })
	var left []string
	var why error
	for j, err := range errs {
		if err != nil {
			left, why = append(left, sent[j]), cmp.Or(why, err)
		}
	}
	k.names = k.names[len(sent):]
	if why != nil { //mutant:RuleRepairEvery
		if k.names = append(k.names, left...); len(left) == len(sent) {
			k.batch = max(1, k.batch/4)
		}
		return why
	}
	k.batch = min(2*k.batch, maxBatch())
	return nil
}

// bringName copies one name to the node. It decides an undecided register once
// in an attempt: if the register becomes undecided again, that run is alive
// (repair-decides.txt). It then reads the register again, because the node need
// not be in the majority that has the decision.
func (a *Attempt) bringName(io IO, name string) error {
	g := io.Group()
	_, succession := g.Brings(a.Node, name)
	for decided := false; ; decided = true {
		outcome, err := io.Read(name, succession)
		switch {
		case err != nil || outcome != lease.Inconclusive:
			return err
		case !lease.Decides(true, decided) || a.over.Load():
			return ErrUndecided
		}
		if done, err := io.Decide(name, succession); err != nil || !done {
			return cmp.Or(err, ErrUndecided)
		}
	}
}

// maxBatch is the most names that are copied at a time. It is a function for the
// sake of its mutant.
func maxBatch() int {
	return repairBatch //mutant:RuleRepairBound=1 << 30
}
