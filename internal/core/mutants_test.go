//go:build mutants

package core

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/testkit/mutant"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// contextsEndLate reports whether a context has not ended when End returns.
func contextsEndLate(t *testing.T) bool {
	h := held(t, idle(t, redistest.Start(t, 1)), "n")
	defer h.Release()
	for range 1000 {
		l := h.Lease(0)
		ctx := l.Context()
		l.End(fault.ErrLost)
		if late := !ended(ctx); late {
			<-ctx.Done()
			return context.Cause(ctx) == fault.ErrLost
		}
	}
	return false
}

// Each rule of this package has a test that notices if the rule is missing. The
// tests run one at a time.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		off  string
		find func(t *testing.T) bool
	}{
		{"the leaves of a lost hold are sent before its owner hears of it", "EndFirst", func(t *testing.T) bool {
			first, _ := loss(t)
			return !first
		}},
		{"contexts end in a goroutine of their own", "EndAtOnce", contextsEndLate},
		{"a restarted server has forgotten nothing", "Restart",
			func(t *testing.T) bool { return !restartIsALoss(t) }},
		{"a master that was a replica has forgotten nothing", "Restart",
			func(t *testing.T) bool { return !rollbackIsALoss(t) }},
		{"a failed handshake leaves the address connected", "Handshake",
			func(t *testing.T) bool { return !failedHandshakeEnds(t) }},
		{"the leaves of a release are sent before its contexts end", "ReleaseLast",
			func(t *testing.T) bool { return !contextsEndBeforeLeaves(t) }},
		{"a node in cluster mode is waited for", "ClusterMode",
			func(t *testing.T) bool { return !clusterModeIsForGood(t) }},
		{"requests name a set that claims do not know yet", "NameLast", namesTooEarly},
		{"names are listed while their slot moves", "WholeSlot", listsHalfASlot},
	} {
		t.Run(m.name, func(t *testing.T) {
			assert.False(t, m.find(t), "with the rule")
			defer mutant.Off(m.off)()
			assert.True(t, m.find(t), "without the rule")
		})
	}
}

// The violations that these rules of the protocol prevent also show on real
// connections.
func TestProtocolMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		off  string
		find func(t *testing.T) bool
	}{
		{"long values are sent without room for them", "RuleRecordsWait",
			func(t *testing.T) bool { return breaksByValues(t) > 0 }},
		{"watches ask on a new connection without room for it", "RuleRecordsWait",
			func(t *testing.T) bool { return breaksByWatches(t) > 1 }},
	} {
		t.Run(m.name, func(t *testing.T) {
			assert.False(t, m.find(t), "with the rule")
			defer mutant.Off(m.off)()
			assert.True(t, m.find(t), "without the rule")
		})
	}
}
