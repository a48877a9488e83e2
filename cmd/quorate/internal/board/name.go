package board

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/inspect"
)

// name is what is known of a name.
type name struct {
	last   inspect.Report
	at     time.Time // of last
	seen   bool      // last is known
	free   bool      // it was free before it was first looked at
	unsure bool      // the newest look found too few nodes
	lost   string    // the process whose lease has ended, until another holds it
	leases map[key]lease

	history *history
}

// key is a claim. The token of a waiter may grow while it waits.
type key struct {
	host  string
	pid   int
	token uint64
}

func keyOf(c *inspect.Claim) key { return key{c.Host, c.PID, c.Token} }

// lease is what is known of the lease of a claim.
type lease struct {
	renewed time.Time // when it was last seen to be renewed, or first seen
	ends    time.Time // as it was seen then
	left    time.Duration
}

// renew returns the lease after what was seen of it. An end that is later than
// before is a renewal, unless it is no more than the time that an answer may
// have taken.
func (l lease) renew(at time.Time, left time.Duration) lease {
	if ends := at.Add(left); l.renewed.IsZero() || ends.Sub(l.ends) > min(left/10, 250*time.Millisecond) {
		l.renewed, l.ends = at, ends
	}
	l.left = left
	return l
}

// late reports whether the claim is not renewed any more.
//
// A process renews after a third of the lease: it has been d since the renewal
// and the lease has left to run, so d is at most (d+left)/3, which is left/2.
// What was seen of d is no more than d. With three quarters of left, which are
// three sevenths of the lease, a renewal may take a tenth of the lease.
func (l lease) late(at time.Time) bool {
	left := max(0, l.left)
	return !l.renewed.IsZero() && at.Sub(l.renewed) > left*3/4
}

// look takes in what the nodes said.
func (n *name) look(b *Board, l *Look) {
	n.unsure = l.Unsure
	if l.Unsure {
		n.history.pause()
		if !n.seen {
			n.last, n.at = l.Report, l.At
		}
		return
	}
	n.history.see(l.At, parts(&l.Report))
	leases := map[key]lease{}
	for _, c := range slices.Concat(l.Report.Holders, l.Report.Waiters) {
		leases[keyOf(&c)] = n.leases[keyOf(&c)].renew(l.At, c.Left)
	}
	if n.seen || n.free {
		n.compare(b, l)
	}
	n.last, n.at, n.seen, n.leases = l.Report, l.At, true, leases
}

// compare makes events of what has changed since the last look.
func (n *name) compare(b *Board, l *Look) {
	now := map[key]bool{}
	for i := range l.Report.Holders {
		now[keyOf(&l.Report.Holders[i])] = true
	}
	was := map[key]bool{}
	for i := range n.last.Holders {
		c := &n.last.Holders[i]
		was[keyOf(c)] = true
		switch {
		case now[keyOf(c)]:
		case n.leases[keyOf(c)].late(n.at) || !l.At.Before(n.leases[keyOf(c)].ends):
			n.lost = Claimant(c)
			b.event(l.At, Lost, l.Report.Name, "lost by "+n.lost+": its lease ended")
		default:
			b.event(l.At, Released, l.Report.Name, "released by "+Claimant(c))
		}
	}
	for i := range l.Report.Holders {
		c := &l.Report.Holders[i]
		switch {
		case was[keyOf(c)]:
		case n.lost != "":
			b.event(l.At, TakenOver, l.Report.Name, "taken over by "+Claimant(c)+" from "+n.lost)
			n.lost = ""
		default:
			b.event(l.At, Taken, l.Report.Name, "taken by "+Claimant(c))
		}
	}
	if r, before := l.Report.Record, n.last.Record; l.Report.Kind == inspect.Leader && r != nil &&
		(before == nil || before.ID != r.ID || before.Token != r.Token) {
		b.event(l.At, Leads, l.Report.Name, "led by "+r.ID)
	}
}

// row is what is to be shown of the name.
func (n *name) row(at time.Time) Row {
	r := &n.last
	row := Row{
		id: r.Name, Name: Printable(r.Name), Kind: cmp.Or(string(r.Kind), "?"), Unsure: n.unsure,
		Wait:    len(r.Waiters) + r.More,
		Holders: n.claims(r.Holders, at), Waiters: n.claims(r.Waiters, at),
		Foreign: r.Foreign.Seconds(), Nodes: []Says{},
	}
	for _, c := range row.Holders {
		row.Late = row.Late || c.Late
	}
	if len(r.Waiters) > 0 {
		row.Waited = max(0, at.Sub(r.Waiters[0].Since)).Seconds()
	}
	if r.Record != nil {
		row.Record = Printable(record(r, at))
	}
	for _, s := range r.Nodes {
		says := Says{Node: Printable(s.Node), Queued: s.Queued, Tokens: []string{}, Differs: []string{}}
		if s.Err != nil {
			says.Err = Printable(s.Err.Error())
		}
		for _, t := range s.Tokens {
			says.Tokens = append(says.Tokens, token(t))
		}
		for _, d := range s.Differs {
			says.Differs = append(says.Differs, Printable(d))
		}
		row.Nodes = append(row.Nodes, says)
	}
	return row
}

func (n *name) claims(all []inspect.Claim, at time.Time) []Claim {
	shown := []Claim{}
	for i := range all {
		c := &all[i]
		shown = append(shown, Claim{
			Process: Printable(Claimant(c)), Share: Share(&n.last, c), Token: token(c.Token), Since: c.Since,
			Left: max(0, c.Left-at.Sub(n.at)).Seconds(), Votes: c.Votes, Late: n.leases[keyOf(c)].late(n.at),
		})
	}
	return shown
}
