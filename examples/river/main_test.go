//go:build unix

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/pgtest"
	"github.com/quorate/quorate/quoratetest"
)

// Of two replicas one works on the queue, and when it stops, the other does.
// All jobs run, and no two at a time.
func TestTwoReplicas(t *testing.T) {
	db, err := pgxpool.New(t.Context(), pgtest.Start(t))
	require.NoError(t, err)
	defer db.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(db), nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	insert, err := river.NewClient(riverpgxv5.New(db), &river.Config{})
	require.NoError(t, err)
	const jobs = 20
	for i := range jobs {
		_, err := insert.Insert(t.Context(), Number{fmt.Sprint(i)}, &river.InsertOpts{Queue: queue})
		require.NoError(t, err)
	}

	type run struct {
		order string
		token uint64
	}
	runs := make(chan run, 10*jobs)
	var inside atomic.Int64
	s := service{db: db, number: func(ctx context.Context, order string, token uint64) error {
		assert.EqualValues(t, 1, inside.Add(1), "one at a time")
		defer inside.Add(-1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		runs <- run{order, token}
		return nil
	}}
	c := quoratetest.New(t, 3)
	start := func() (stop func()) {
		q := c.Quorum()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx, q) }()
		return func() {
			cancel()
			require.ErrorIs(t, e2e.Receive(t, ended), context.Canceled)
		}
	}
	stopFirst := start()
	tokens, orders := map[uint64]int{}, map[string]int{}
	take := func() {
		r := e2e.ReceiveWithin(t, 2*e2e.Patience, runs)
		tokens[r.token]++
		orders[r.order]++
	}
	take()
	stopSecond := start()
	for range 4 {
		take()
	}
	assert.Len(t, tokens, 1, "the second one does not work")
	stopFirst()
	for len(orders) < jobs {
		take()
	}
	assert.Len(t, tokens, 2)
	stopSecond()
}
