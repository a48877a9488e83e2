//go:build search

package exhaustive

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var full = flag.Bool("exhaustive.full", false, "search the large worlds too: 4 GiB")

// at changes a configuration.
func at(c Config, changes ...func(*Config)) Config {
	for _, f := range changes {
		f(&c)
	}
	return c
}

func prompt(c *Config)   { c.Delay = 0 }
func restart(c *Config)  { c.Restarts = 1 }
func cut(c *Config)      { c.Cuts = 1 }
func repeat(c *Config)   { c.Repeats = 1 }
func anyClock(c *Config) { c.Skew = Unbounded }
func skewed(c *Config)   { c.Skew, c.Guard = 1, c.Guard+2 }
func fastNode(c *Config) { c.Gains, c.Drift = 1, 1 }
func raises(c *Config)   { c.Raises = 3 }
func live(c *Config)     { c.Live = 1 }

// apart keeps the second claim from one node.
func apart(c *Config) { c.Apart = [][2]int{{1, 0}} }

// brief has both leave a node out at first: the same one, or not.
func brief(first, second uint32) func(*Config) {
	return func(c *Config) {
		c.Claims[0].Later, c.Claims[0].After = first, 1
		c.Claims[1].Later, c.Claims[1].After = second, 1
	}
}

func beats(n int) func(*Config)  { return func(c *Config) { c.Beats = n } }
func fails(n int) func(*Config)  { return func(c *Config) { c.Fails = n } }
func drops(n int) func(*Config)  { return func(c *Config) { c.Drops = n } }
func stops(n int) func(*Config)  { return func(c *Config) { c.Stops = n } }
func pauses(n int) func(*Config) { return func(c *Config) { c.Pauses = n } }
func seldom(n int) func(*Config) { return func(c *Config) { c.Live = n } }

// worlds are searched to their end: doc.go says what that means.
var worlds = []struct {
	name  string
	cfg   Config
	large bool
}{
	{name: "messages take any time", cfg: at(Mutex(2, false), beats(0))},
	{name: "messages take any time, two beats", cfg: at(Mutex(2, false), beats(2)), large: true},
	{name: "messages take any time, one residue", cfg: at(Mutex(2, true), beats(0))},
	{name: "messages take any time, restart", cfg: at(Mutex(2, false), beats(0), restart)},
	{name: "messages take any time, a copy comes later",
		cfg: at(Mutex(2, false), beats(0), repeat), large: true},
	{name: "messages take any time, one given up", cfg: at(Mutex(2, false), beats(0), fails(1)), large: true},
	{name: "messages take any time, one leaves a node out at first",
		cfg: at(Mutex(2, false), beats(0), brief(0b100, 0))},
	{name: "messages take any time, both leave a node out at first",
		cfg: at(Mutex(2, false), beats(0), brief(0b100, 0b010))},
	{name: "messages take any time, both leave the same node out at first",
		cfg: at(Mutex(2, false), beats(0), brief(0b100, 0b100))},
	{name: "messages take any time, the second leaves a node out at first",
		cfg: at(Mutex(2, false), beats(0), brief(0, 0b100))},
	{name: "messages take any time, both leave a node out at first, restart",
		cfg: at(Mutex(2, false), beats(0), brief(0b100, 0b010), restart), large: true},
	{name: "messages take any time, a node has no room",
		cfg: at(Mutex(2, false), beats(0), stops(1)), large: true},
	{name: "messages take any time, a connection is lost",
		cfg: at(Mutex(2, false), beats(0), drops(1)), large: true},
	{name: "prompt, a node has no room", cfg: at(Mutex(2, false), prompt, stops(1), seldom(20)), large: true},
	{name: "prompt, a node has no room, two beats", cfg: at(Mutex(2, false), prompt, beats(2), stops(1), live)},
	{name: "prompt, a node has no room, three beats, restart",
		cfg: at(Mutex(2, false), prompt, beats(3), stops(1), restart), large: true},
	{name: "prompt, a node has no room, two beats, cut off",
		cfg: at(Mutex(2, false), prompt, beats(2), stops(1), cut), large: true},
	{name: "prompt, a connection is lost, three beats",
		cfg: at(Mutex(2, false), prompt, beats(3), drops(1), seldom(20)), large: true},
	{name: "prompt, the second leaves a node out at first",
		cfg: at(Mutex(2, false), prompt, live, brief(0, 0b100))},
	{name: "prompt, both leave the same node out at first, restart",
		cfg: at(Mutex(2, false), prompt, brief(0b100, 0b100), restart, seldom(20)), large: true},
	{name: "prompt, each leaves another node out at first, cut off",
		cfg: at(Mutex(2, false), prompt, cut, brief(0b100, 0b001), seldom(20)), large: true},
	{name: "prompt, each leaves another node out at first, one residue",
		cfg: at(Mutex(2, true), prompt, brief(0b100, 0b001), live)},
	{name: "prompt, both leave a node out at first",
		cfg: at(Mutex(2, false), prompt, live, brief(0b100, 0b100))},
	{name: "prompt, each leaves another node out at first, restart",
		cfg: at(Mutex(2, false), prompt, brief(0b100, 0b001), restart, seldom(20))},
	{name: "prompt", cfg: at(Mutex(2, false), prompt, live)},
	{name: "prompt, one residue", cfg: at(Mutex(2, true), prompt, live)},
	{name: "prompt, lease of 3, restart", cfg: at(Mutex(3, false), prompt, restart, seldom(20))},
	{name: "prompt, lease of 3, clocks a unit apart, restart",
		cfg: at(Mutex(3, false), prompt, skewed, restart)},
	{name: "prompt, clocks anywhere, restart", cfg: at(Mutex(2, false), prompt, anyClock, restart)},
	{name: "prompt, two pauses, restart", cfg: at(Mutex(2, false), prompt, pauses(2), restart)},
	{name: "prompt, cut off", cfg: at(Mutex(2, false), prompt, cut, seldom(20))},
	{name: "prompt, cut off, restart", cfg: at(Mutex(2, false), prompt, cut, restart), large: true},
	{name: "prompt, one node out of reach, restart", cfg: at(Mutex(2, false), prompt, apart, restart)},
	{name: "prompt, one residue, restart", cfg: at(Mutex(2, true), prompt, restart, raises), large: true},
	{name: "prompt, one given up", cfg: at(Mutex(2, false), prompt, fails(1), seldom(100)), large: true},
	{name: "prompt, a copy comes later", cfg: at(Mutex(2, false), prompt, repeat), large: true},
	{name: "prompt, a copy comes later, three beats, restart",
		cfg: at(Mutex(2, false), prompt, repeat, beats(3), restart), large: true},
	{name: "fast node, lease of 3", cfg: at(Mutex(3, false), prompt, cut, fastNode), large: true},
}

func TestExhaustive(t *testing.T) {
	for _, w := range worlds {
		if w.large && !*full {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := Run(w.cfg)
			t.Log(r)
			for _, line := range r.Trace {
				t.Log("   ", line)
			}
			assert.Empty(t, r.Wrong)
			assert.True(t, r.Complete)
		})
	}
}

// The names of nodes do not matter, so two worlds in which the deferred nodes
// differ in names only have the same number of states. When a search renamed
// nodes that a claim was yet to defer, they had not.
func TestNamesOfDeferredNodes(t *testing.T) {
	var same, other Result
	for i := range nodes {
		for j := range nodes {
			r := Run(at(Mutex(2, false), prompt, brief(1<<i, 1<<j)))
			assert.True(t, r.Complete, "%v %v", r, r.Trace)
			first := &same
			if i != j {
				first = &other
			}
			if first.States == 0 {
				*first = r
			}
			assert.Equal(t, first.States, r.States, "deferred: %d and %d", i, j)
			assert.Equal(t, first.Moves, r.Moves, "deferred: %d and %d", i, j)
		}
	}
}

func TestStringOfResult(t *testing.T) {
	r := Result{States: 3, Moves: 4, Depth: 2, Complete: true, Elapsed: 1500 * time.Millisecond}
	assert.Equal(t, "3 states, 4 moves, depth 2, complete, 1.5s", r.String())
}
