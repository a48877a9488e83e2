package main

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneReplicaLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for range 3 {
			f.start()
		}
		for range 5 {
			f.ledger.order(10)
			assert.LessOrEqual(t, f.billed(), 2*time.Second)
		}
		assert.Equal(t, 1, f.terms())
		assert.Equal(t, 1, f.ledger.migrated)
		assert.Len(t, f.nodes.Holders("billing: leader"), 1)
	})
}

func TestLeaderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		first := f.start()
		f.start()
		f.ledger.order(1)
		f.billed()
		f.dies(first)
		f.ledger.order(1)
		assert.Less(t, f.billed(), lease+3*time.Second, "the lease, and a look")
		assert.Equal(t, 2, f.terms())
	})
}

func TestLeaderStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		first := f.start()
		f.start()
		f.ledger.order(1)
		f.billed()
		first.stop()
		f.ledger.order(1)
		assert.Less(t, f.billed(), 2*time.Second, "its lease was not waited for")
		assert.Equal(t, 2, f.terms())
	})
}

// A leader that two of three nodes do not hear ends before another begins.
func TestLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		first := f.start()
		f.start()
		f.ledger.order(1)
		f.billed()
		f.nodes.Partition(first.q, 0, 1)
		for range 30 { // orders all the time
			f.ledger.order(1)
			time.Sleep(time.Second)
		}
		f.billed()
		assert.Equal(t, 2, f.terms())
		_, refused := f.ledger.count()
		assert.Zero(t, refused, "the first had stopped by itself")
	})
}

func TestOneNodeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.start()
		f.start()
		f.ledger.order(1)
		f.billed()
		f.nodes.Stop(0)
		f.ledger.order(1)
		assert.Less(t, f.billed(), 2*time.Second)
		time.Sleep(3 * lease)
		f.ledger.order(1)
		assert.Less(t, f.billed(), 2*time.Second)
		assert.Equal(t, 1, f.terms())
	})
}

// Without a majority there is no leader after the lease, and no invoice. When
// the nodes are back, and have waited for the guard time, it goes on.
func TestTwoOfThreeNodesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.start()
		f.start()
		f.ledger.order(1)
		f.billed()
		f.nodes.Stop(0)
		f.nodes.Stop(1)
		time.Sleep(lease)
		f.ledger.order(1)
		time.Sleep(time.Minute)
		invoices, _ := f.ledger.count()
		assert.Equal(t, 1, invoices)
		f.nodes.Start(0)
		f.nodes.Start(1)
		assert.Less(t, f.billed(), guard+lease)
		assert.Equal(t, 2, f.terms())
	})
}

// Nodes that restart one after the other, the guard time apart, are not
// noticed, also when they forget all.
func TestRollingRestartOfTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.start()
		f.start()
		for i := range 3 {
			f.nodes.Forget(i)
			f.ledger.order(1)
			assert.Less(t, f.billed(), 2*time.Second)
			time.Sleep(guard + 5*time.Second)
		}
		assert.Equal(t, 1, f.terms())
	})
}

// A deployment replaces one replica after the other under load.
func TestRollingRestartOfTheReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		all := []*replica{f.start(), f.start(), f.start()}
		for i := range all {
			f.ledger.order(5)
			all = append(all, f.start())
			all[i].stop()
			assert.Less(t, f.billed(), 2*time.Second)
		}
		assert.Equal(t, 1, f.ledger.migrated)
	})
}

// A leader that is paused in the middle of a write, for longer than its lease,
// is refused.
func TestStaleTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		pauses := make(chan struct{})
		var begun atomic.Bool
		f.ledger.invoice = func() {
			if begun.CompareAndSwap(false, true) {
				close(pauses)
				time.Sleep(time.Minute)
			}
		}
		first := f.start()
		f.start()
		f.ledger.order(1)
		<-pauses
		f.nodes.Partition(first.q, 0, 1, 2) // a paused process does not renew
		f.ledger.order(1)
		assert.Less(t, f.billed(), lease+3*time.Second)
		_, refused := f.ledger.count()
		assert.Zero(t, refused)
		time.Sleep(time.Minute)
		invoices, refused := f.ledger.count()
		assert.Equal(t, []int{2, 1}, []int{invoices, refused})
	})
}

// A migration that fails is the error of one replica, and the next one's turn.
func TestMigrationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		broken := errors.New("the disk is full")
		f.ledger.migrate = func() error { return broken }
		q := f.nodes.Quorum()
		s := service{q: q, ledger: f.ledger, log: slog.New(slog.DiscardHandler),
			poll: time.Second, report: time.Minute}
		require.ErrorIs(t, s.run(t.Context()), broken)
		f.ledger.migrate = nil
		f.start()
		f.ledger.order(1)
		f.billed()
		assert.Equal(t, 1, f.ledger.migrated)
	})
}

// Each period has one report, also when the replica that would make it is cut
// off.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		first := f.start()
		f.start()
		time.Sleep(90 * time.Second)
		f.nodes.Partition(first.q, 0, 1, 2)
		time.Sleep(2 * time.Minute)
		f.ledger.mu.Lock()
		defer f.ledger.mu.Unlock()
		assert.Len(t, f.ledger.reports, 4)
		for day, n := range f.ledger.reports {
			assert.Equal(t, 1, n, day)
		}
	})
}
