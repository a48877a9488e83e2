package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// What a test can do to the path between one Quorum and the nodes, and what it
// sees of the claims on the nodes.

// Way is the path from one Quorum to the nodes. The zero value reaches all of
// them. It is safe for concurrent use. Lock order: Way.mu, then Node.mu.
type Way struct {
	mu  sync.Mutex
	cut []*Node
	all []*Transport
}

// Cut breaks the connections to these nodes, and prevents new ones until the
// next Cut. The other nodes can be reached.
func (w *Way) Cut(nodes []*Node) {
	w.mu.Lock()
	w.cut = nodes
	all := slices.Clone(w.all)
	w.mu.Unlock()
	for _, t := range all {
		t.bar(slices.Contains(nodes, t.node))
	}
}

// open begins a connection.
func (w *Way) open(n *Node, cfg transport.Config) *Transport {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := newTransport(n, cfg, slices.Contains(w.cut, n))
	w.all = append(w.all, t)
	return t
}

// Reaches returns how many of the nodes can be reached.
func (ns Nodes) Reaches(w *Way) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range ns {
		n.mu.Lock()
		if n.down == nil && !n.frozen && !slices.Contains(w.cut, n) {
			count++
		}
		n.mu.Unlock()
	}
	return count
}

// Held is a claim that a majority of the nodes votes for.
type Held struct {
	Ticket  protocol.Ticket
	Left    time.Duration // until a majority does so no more
	Waiters int           // claims at the name that no majority votes for
}

// Holders returns the claims of a name that a majority of the nodes votes for,
// lowest ticket first, with any prefix.
func (ns Nodes) Holders(name string) (held []Held) {
	tickets, left := map[protocol.ID]protocol.Ticket{}, map[protocol.ID][]int64{}
	for _, n := range ns {
		for _, c := range n.claims(name) {
			tickets[c.ID] = max(tickets[c.ID], c.Ticket)
			if c.Voted {
				left[c.ID] = append(left[c.ID], c.Expiry)
			}
		}
	}
	q := len(ns)/2 + 1
	for _, id := range slices.Collect(maps.Keys(left)) {
		if e := left[id]; len(e) >= q {
			slices.Sort(e)
			held = append(held, Held{Ticket: tickets[id], Left: time.Duration(e[len(e)-q]) * time.Millisecond})
		}
	}
	for i := range held {
		held[i].Waiters = len(tickets) - len(held)
	}
	slices.SortFunc(held, func(a, b Held) int { return cmp.Compare(a.Ticket, b.Ticket) })
	return held
}

// claims are those of a name that live, with what is left as their Expiry.
func (n *Node) claims(name string) (all []model.Claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.millis()
	for key := range n.server.Model.Names() {
		if strings.HasSuffix(key, ":{"+name+"}") {
			all = append(all, n.server.Model.Name(key).Claims(now)...)
		}
	}
	for i := range all {
		all[i].Expiry -= now
	}
	return all
}
