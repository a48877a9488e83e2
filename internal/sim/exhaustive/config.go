//go:build search

package exhaustive

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

const (
	nodes     = 3
	maxClaims = 3
	unit      = time.Millisecond // the smallest that a node tells apart

	// Unbounded switches a bound of Config off.
	Unbounded = -1
)

// ClaimConfig is one claim of the search.
type ClaimConfig struct {
	Residue byte
	Weight  uint64
	// Propose lists the T0 that the claim may start with. One that is not above
	// every other is possible only while its client's clock can be that far
	// behind.
	Propose []protocol.Ticket
	// Later are the nodes that it leaves out at first, a bit for each, and
	// After for how long.
	Later uint32
	After int
}

// Config says what the search goes through. Durations are in units.
type Config struct {
	Claims   []ClaimConfig // in the order in which they start
	Capacity uint64
	TTL      int
	Guard    int
	// Skew is between client clocks: how long after another claim's start T0
	// may still be below it. Unbounded looks at exclusion alone: tokens do rely
	// on it.
	Skew  int
	Drift int // what clients deduct from a lease

	// Delay bounds how long a message travels, unless a failure hits it.
	Delay int
	// Fails is how many messages are given up by the claim. Each may still
	// arrive, at any time and in any order: so this is loss, delay and
	// overtaking.
	Fails int
	// Cuts is how many times a claim and a node lose each other forever, and the
	// claim gets a failure, each time that it tries.
	Cuts int
	// Apart lists pairs of a claim and a node that never reach each other.
	Apart [][2]int
	// Repeats is how many requests arrive a second time, at any time later.
	Repeats int
	// Beats is how many beats reach a node; the others are lost unnoticed.
	Beats int
	// Restarts is how many times a node loses its data.
	Restarts int
	// Drops is how many times a claim's connection to a node is lost and comes
	// back: the claim gets a failure for all that is under way there, each
	// request may still arrive at any time, and the claim asks once more.
	Drops int
	// Stops is how many times a node has no room for the requests of a claim,
	// for any time. What it is to get waits at the client meanwhile.
	Stops int
	// Pauses is how many units of time pass unnoticed by one of the processes.
	Pauses int
	// Units is how much time passes in all.
	Units int
	// Gains is how many units a node's clock is fast, taken together.
	Gains int

	// Raises bounds the ticket that is pursued, in residue classes above the
	// first: two claims of one class can chase each other without end in no
	// time.
	Raises int

	Off    model.Rules // rules of the node that are left out
	Mutant bool        // rules of the client are

	// Look at every so many-th state whether a calm network serves all claims from
	// there; 0: at none.
	Live      int
	MaxStates int // 0: no limit
}

// Mutex is the configuration of two claims for one lock, with nothing going
// wrong yet. With same, both ids are of one residue class and may propose the
// very same ticket. Other residues change nothing: only the order of tickets
// is ever looked at, and two classes alternate in it whatever their distance.
func Mutex(ttl int, same bool) Config {
	a := ClaimConfig{Weight: 1, Propose: []protocol.Ticket{base}}
	b := ClaimConfig{Weight: 1, Residue: 1, Propose: []protocol.Ticket{base - protocol.Residues + 1, base + 1}}
	if same {
		b.Residue, b.Propose = 0, []protocol.Ticket{base - protocol.Residues, base, base + protocol.Residues}
	}
	return Config{
		Claims: []ClaimConfig{a, b}, Capacity: 1, TTL: ttl, Guard: 2 * ttl,
		Delay: Unbounded, Beats: Unbounded, Units: Unbounded, Raises: Unbounded,
	}
}

// Semaphore is three claims of weight 1 for two permits, whose T0 are in the
// order in which they start.
func Semaphore(ttl int) Config {
	c := Mutex(ttl, false)
	c.Capacity, c.Claims = 2, nil
	for i := range 3 {
		c.Claims = append(c.Claims, ClaimConfig{Weight: 1, Residue: byte(i),
			Propose: []protocol.Ticket{base + protocol.Ticket(i)}})
	}
	return c
}

// base is a ticket of residue class 0.
const base = 10 * protocol.Residues

func (c *Config) id(claim int) protocol.ID {
	// The first bytes make jitter in internal/lease, and there is none in
	// units; the others must differ.
	return protocol.ID{3: byte(1 + claim), 15: c.Claims[claim].Residue}
}

func (c *Config) terms(claim int) protocol.Terms {
	return protocol.Terms{
		ID: c.id(claim), Weight: c.Claims[claim].Weight, Capacity: c.Capacity, TTL: time.Duration(c.TTL) * unit,
		Counting: c.Capacity > 1,
	}
}

// timeout: timeouts are failures that the search decides on, never the clock.
const timeout = 1000 * unit

// start has a claim begin.
func (c *Config) start(client *process.Client, now protocol.Time,
	a *process.Attempt, n *process.Name, claim int) {
	cfg := client.Config(false)
	cfg.Terms, cfg.NodeTimeout, cfg.Drift = c.terms(claim), timeout, time.Duration(c.Drift)*unit
	client.Start(now, a, n, cfg, lease.Links{},
		lease.Deferral{Nodes: c.Claims[claim].Later, After: time.Duration(c.Claims[claim].After) * unit})
}

// client returns the Client of every process, which takes for the nodes' clocks
// what the search wants it to. It judges no reply: see doc.go.
func (c *Config) client(clock *protocol.Ticket) *process.Client {
	return process.NewClient(process.ClientConfig{
		Nodes: nodes, TTL: time.Duration(c.TTL) * unit, NodeTimeout: timeout,
		Skewed: func(protocol.Ticket) protocol.Ticket { return *clock },
	})
}
