//go:build search

package process

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/fields"
)

// As TestStateIsComplete, of what an attempt has in addition to its claim.
func TestStateOfAttemptIsComplete(t *testing.T) {
	t.Parallel()
	reported := map[string]string{
		"Claim":           "looked at by TestStateIsComplete",
		"outbox":          "looked at below",
		"unsent":          "looked at below",
		"reached":         "only read by Refused, and no search has nodes that refuse for now",
		"ended":           "only reported, by Free",
		"free":            "only reported, by Free",
		"phase":           "the claim's, after News",
		"met":             "only reported, to Name",
		"taken":           "only reported, by News",
		"waitersReported": "only reported, by News",
		"Node":            "where the request waits",
		"Merged":          "of a request that has been answered",
		"Withdrawn":       "of a request that is in the outbox no more",
		"Stored":          "of a record's request",
		"Promise":         "of a record's request",
	}
	now := protocol.Time(time.Hour)
	attempt := func() *Attempt {
		a := &Attempt{Claim: *lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1,
			TTL: time.Minute}, Nodes: 1})}
		a.outbox.unsent = &[32]*protocol.Request{{Op: protocol.OpJoin, Sent: now}}
		return a
	}
	parts := map[string]func(a *Attempt) any{
		"attempt": func(a *Attempt) any { return a },
		"outbox":  func(a *Attempt) any { return &a.outbox },
		"request": func(a *Attempt) any { return a.outbox.unsent[0] },
	}
	for name, part := range parts {
		all := reflect.TypeOf(part(attempt())).Elem()
		for i := range all.NumField() {
			a, b := attempt(), attempt()
			fields.Change(reflect.ValueOf(part(b)).Elem().Field(i), now)
			field := all.Field(i).Name
			if bytes.Equal(a.AppendState(nil, now), b.AppendState(nil, now)) && reported[field] == "" {
				t.Errorf("%s: the state does not have %s", name, field)
			}
		}
	}
}
