//go:build search

package lease

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/fields"
)

// reported is what no later step of a claim reads, or what another field
// implies.
var reported = map[string]string{
	"Config":       "the same during a search, save for the weight",
	"State":        "looked at one by one",
	"Out":          "requests, which a search takes at once",
	"peers":        "looked at one by one",
	"extraOrNil":   "looked at one by one",
	"lowerSet":     "looked at one by one",
	"admittedSet":  "looked at one by one",
	"waiters":      "only reported",
	"ID":           "of a push: always the claim's",
	"Clock":        "of a push: not read",
	"Vote":         "of a push that was kept: always true",
	"Waiters":      "of a push: only reported",
	"Changed":      "of a push: always false",
	"Ask":          "of a push that was kept: always false",
	"Evict":        "of a push that was kept: always false",
	"evicted":      "only reported",
	"earlyPush":    "looked at one by one",
	"prefixTotals": "looked at one by one",
	"all":          "looked at one by one",
}

// A search takes two claims with the same state for one. So the state has every
// field that a later step reads.
func TestStateIsComplete(t *testing.T) {
	t.Parallel()
	now := protocol.Time(time.Hour)
	claim := func(phase Phase, try bool) *Claim {
		c := NewClaim(Config{
			Terms: protocol.Terms{Weight: 1, Capacity: 3, TTL: time.Minute, Counting: true}, Nodes: 1,
			NodeTimeout: time.Second, Drift: time.Second, Try: try,
		})
		c.State.phase = phase
		m := c.State.peers[0].mutableExtra()
		m.earlyPush.Vote, m.shrinkPending = true, true
		c.State.peers[0].held = true
		return c
	}
	parts := map[string]func(c *Claim) any{
		"claim":   func(c *Claim) any { return c },
		"views":   func(c *Claim) any { return &c.State },
		"peer":    func(c *Claim) any { return &c.State.peers[0] },
		"more":    func(c *Claim) any { return c.State.peers[0].extraOrNil },
		"content": func(c *Claim) any { return &c.State.peers[0].extraOrNil.lowerSet },
		"was":     func(c *Claim) any { return &c.State.peers[0].extraOrNil.admittedSet },
		"base":    func(c *Claim) any { return &c.State.peers[0].extraOrNil.prefixTotals },
		"all":     func(c *Claim) any { return &c.State.peers[0].extraOrNil.all },
		"early":   func(c *Claim) any { return &c.State.peers[0].extraOrNil.earlyPush },
	}
	for name, part := range parts {
		all := reflect.TypeOf(part(claim(Joining, false))).Elem()
		for i := range all.NumField() {
			field, seen := all.Field(i).Name, false
			for _, phase := range []Phase{Joining, Waiting, Holding} {
				for _, try := range []bool{false, true} {
					a, b := claim(phase, try), claim(phase, try)
					fields.Change(reflect.ValueOf(part(b)).Elem().Field(i), now)
					seen = seen || !bytes.Equal(a.AppendState(nil, now), b.AppendState(nil, now))
				}
			}
			if why := reported[field]; !seen && why == "" {
				t.Errorf("%s: the state does not have %s", name, field)
			}
		}
	}
}
