package operator

// Texts about an exchange: its progress, the state of the set in an error, and
// why a change is unfit. No step depends on them.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
)

// report tells the caller how far the exchange is, if that has changed. It runs
// on the goroutine of Exchange, with no lock held. A Progress function that
// blocks delays the rounds of this call. It delays no claim, and no client that
// follows what was decided.
//
// Left is no part of the comparison: it changes with each round. A command that
// prints each report would print two lines a node timeout, for minutes.
func (x *exchange) report(at change.OperatorProgress) {
	if x.ask.Progress == nil {
		return
	}
	p := Progress{Epoch: at.Config.Stamp.Epoch(), Stage: at.Config.Stage.String(),
		Await: awaits[at.Await], Left: at.Left}
	if at.Await == change.AwaitAnswers {
		p.Await = strings.Join(at.Silent, " ") + p.Await
		if !x.o.Mine() { // this call gives up no other one's change
			p.Await += ", or for \"quorate members undo\" if a node is lost"
		}
	}
	was := x.shown
	if x.shown = p; was.Stage != p.Stage || was.Epoch != p.Epoch || was.Await != p.Await {
		x.ask.Progress(p)
	}
}

var awaits = map[change.OperatorAwait]string{
	change.AwaitAnswers:  " to answer",
	change.AwaitLearnt:   "the new nodes to copy what the others have",
	change.AwaitPlaces:   "holders to get their places on the remaining nodes",
	change.AwaitLeases:   "leases to end that only the old nodes know",
	change.AwaitServed:   "a majority of the nodes to serve the set",
	change.AwaitFollowed: "the clients to follow; keep the removed servers running until then",
}

// state describes how far the set has come, for an error. It reads the current
// configuration instead of the last round's, because a step may have been
// decided since, and an operator acts on the error.
func (x *exchange) state() string {
	c := x.config()
	if c == nil {
		return "no listed node knows the set any more"
	}
	if c.Stage == nodeset.Stable {
		return "the set is " + strings.Join(c.Addrs(), " ") + following(x.o.Follows(x.q.Now()))
	}
	return "the change is unfinished (" + c.Stage.String() +
		"), which is safe: run the same command again to finish it, or \"quorate members undo\" to abandon it, " +
		"for example if a new node is lost"
}

// following says how long clients still follow, in whole seconds, rounded up:
// an operator waits for as long as it says.
func following(left time.Duration) string {
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("; keep the removed servers running for %v more, and make no other change until then: "+
		"clients are still following",
		(left + time.Second - 1).Truncate(time.Second))
}

// unfit explains why the change makes no sense for the set, as found by Fits.
// That checks stable sets only, so each of the set's members stays.
func (x *exchange) unfit() string {
	c := x.o.Config()
	for _, m := range x.goal.Add {
		if c.Place(m.Addr) >= 0 {
			return m.Addr + " is already a node of the set"
		}
	}
	for _, a := range x.goal.Remove {
		if c.Place(a) < 0 {
			return a + " is not a node of the set, which is " + strings.Join(c.Addrs(), " ")
		}
	}
	return "no node of the set would be left, or there would be more than 31"
}

// notMember is the error for an address that belongs to no member.
func notMember(addr string, c *nodeset.Configuration) error {
	return fmt.Errorf("%w: %s is not a node of the set, which is %s", fault.ErrInvalid,
		addr, strings.Join(c.Addrs(), " "))
}

// removedBefore is the error for a node to be removed that is no member. If all
// nodes to be added are members, an earlier call may have made the change.
func (x *exchange) removedBefore(addr string, c *nodeset.Configuration) error {
	err := notMember(addr, c)
	added, _ := addresses(x.ask.Add, c)
	if slices.ContainsFunc(added, func(a string) bool { return c.Place(a) < 0 }) {
		return err
	}
	return fmt.Errorf("%w; if this change was made before, there is nothing left to do but to keep %s running "+
		"for %v more: clients may still be following", err, addr, c.Guard()/2)
}

// needsSkew is the error for a set of the development mode that is to have
// several nodes, whose clocks differ.
func needsSkew(c *nodeset.Configuration) error {
	d, guard := setup.Defaults(), ""
	if c.Guard() < d.Guard {
		guard = fmt.Sprintf("quorate members set --guard %v, then ", d.Guard)
	}
	return fmt.Errorf("%w: the set has one node and a skew of 0, as in development mode, but the clocks of "+
		"several nodes differ: first run %squorate members set --skew %v --yes", fault.ErrInvalid, guard, d.Skew)
}
