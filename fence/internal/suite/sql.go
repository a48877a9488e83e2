// Package suite is what each kind of fence must do.
package suite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
)

// Big is a token as Quorate gives them: above 2^53, so it has no exact double.
const Big = 1838381800842592256

// Database is a database to test on.
type Database struct {
	*sql.DB
	fence.Dialect
	Levels []sql.IsolationLevel
	// Waiting reports whether a check is waiting for another transaction; nil if
	// the database cannot tell.
	Waiting func() bool
	// Again reports whether an error asks for the transaction to be run again.
	Again func(error) bool
}

// SQL checks what a dialect must do on its database.
func SQL(t *testing.T, d Database) {
	t.Run("without the table", func(t *testing.T) {
		err := d.once(t, "orders", 1)
		require.ErrorContains(t, err, "create the table with the statement that Schema returns")
	})
	for range 2 { // it may be there
		_, err := d.ExecContext(t.Context(), d.Schema())
		require.NoError(t, err)
	}
	_, err := d.ExecContext(t.Context(),
		"CREATE TABLE written (name VARCHAR(99) PRIMARY KEY, token BIGINT NOT NULL)")
	require.NoError(t, err)

	t.Run("tokens", func(t *testing.T) { testTokens(t, d) })
	t.Run("bad input", func(t *testing.T) { testBadInput(t, d) })
	t.Run("waiting", func(t *testing.T) { testWaiting(t, d) })
	t.Run("store", func(t *testing.T) {
		Store(t, func() fence.Store { return d.Store(d.DB) })
	})
	t.Run("full pool", func(t *testing.T) { testFullPool(t, d) })
	t.Run("hostile", func(t *testing.T) {
		for i := range 3 {
			h := d.newHostile(t, fmt.Sprint("hostile ", i))
			h.run(d.Check)
			assert.Empty(t, h.found)
			assert.Positive(t, h.wrote.Load(), "some write")
			assert.Positive(t, h.refused.Load(), "some are refused")
			h.settled()
		}
	})
	// The same test finds a check that is not in the transaction of the write.
	t.Run("control", func(t *testing.T) {
		apart := func(ctx context.Context, _ fence.Tx, name string, token uint64) error {
			return d.check(ctx, name, token)
		}
		for i := 0; ; i++ {
			h := d.newHostile(t, fmt.Sprint("control ", i))
			h.run(apart)
			if len(h.found) > 0 {
				return
			}
			require.NoError(t, t.Context().Err())
			require.Less(t, i, 50, "a check in a transaction of its own was not found out")
		}
	})
}

// once checks in a transaction that does nothing else.
func (d *Database) once(t *testing.T, name string, token uint64) error {
	t.Helper()
	return d.check(t.Context(), name, token)
}

func (d *Database) check(ctx context.Context, name string, token uint64) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := d.Check(ctx, tx, name, token); err != nil {
		return err
	}
	return tx.Commit()
}

func testTokens(t *testing.T, d Database) {
	for _, step := range []struct {
		name    string
		token   uint64
		highest uint64 // that refuses it; 0: none does
	}{
		{"orders", 5, 0},
		{"orders", 5, 0},
		{"orders", 7, 0},
		{"orders", 5, 7},
		{"Orders", 1, 0}, // another name
		{"orders ", 1, 0},
		{"orders", Big, 0},
		{"orders", Big + 1, 0},
		{"orders", Big, Big + 1},
		{"orders", Big + 1, 0},
		{"orders", math.MaxInt64, 0},
		{"orders", math.MaxInt64 - 1, math.MaxInt64},
		{`o'r"d%er` + "\\\n日本", 3, 0},
		{`o'r"d%er` + "\\\n日本", 2, 3},
	} {
		err := d.once(t, step.name, step.token)
		if step.highest == 0 {
			require.NoError(t, err, "%q %d", step.name, step.token)
			continue
		}
		require.ErrorIs(t, err, fence.ErrStale, "%q %d", step.name, step.token)
		require.ErrorContains(t, err, fmt.Sprintf("fence %q: token %d is stale, a later holder with token %d",
			step.name, step.token, step.highest))
	}

	// What is rolled back was not there.
	tx, err := d.Begin()
	require.NoError(t, err)
	require.NoError(t, d.Check(t.Context(), tx, "rolled back", 9))
	require.NoError(t, tx.Rollback())
	require.NoError(t, d.once(t, "rolled back", 8))
}

func testBadInput(t *testing.T, d Database) {
	tx, err := d.Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, name := range []string{"", string(make([]byte, 256)), "a\x00b", "\xff"} {
		require.ErrorContains(t, d.Check(t.Context(), tx, name, 1), "a name has 1 to 255 bytes")
	}
	for _, token := range []uint64{0, 1 << 63} {
		require.ErrorContains(t, d.Check(t.Context(), tx, "bad", token), "no hold has the token")
	}
	require.ErrorContains(t, d.Check(t.Context(), d.DB, "bad", 1), "call BeginTx")
	require.NoError(t, d.Check(t.Context(), tx, "bad", 1), "nothing of this has reached the transaction")
	require.PanicsWithValue(t, "fence: there is no Dialect(0): use PostgreSQL, MySQL or SQLite", func() {
		_ = fence.Dialect(0).Check(t.Context(), tx, "bad", 1)
	})
}

// A check waits for the transaction that has checked before, and then knows how
// that has ended. So it is for the first use of a name, too.
func testWaiting(t *testing.T, d Database) {
	i := 0
	for _, known := range []bool{true, false} {
		for _, commit := range []bool{true, false} {
			for _, second := range []uint64{Big - 1, Big, Big + 1} {
				i++
				name := fmt.Sprint("waiting ", i)
				if known {
					require.NoError(t, d.once(t, name, 1))
				}
				tx, err := d.Begin()
				require.NoError(t, err)
				require.NoError(t, d.Check(t.Context(), tx, name, Big))
				ended := make(chan error, 1)
				go func() { ended <- d.once(t, name, second) }()
				if d.Waiting != nil {
					require.Eventually(t, d.Waiting, 20*time.Second, time.Millisecond)
					require.Empty(t, ended)
				}
				if !commit {
					require.NoError(t, tx.Rollback())
					require.NoError(t, <-ended)
					continue
				}
				require.NoError(t, tx.Commit())
				if err := <-ended; second < Big {
					require.ErrorIs(t, err, fence.ErrStale)
				} else {
					require.NoError(t, err)
				}
			}
		}
	}
}

// A request that waits for a connection of the pool gives up when its context
// ends.
func testFullPool(t *testing.T, d Database) {
	d.SetMaxOpenConns(1)
	defer d.SetMaxOpenConns(0)
	s := d.Store(d.DB)
	leave, err := s.Enter(t.Context(), "full", Big)
	require.NoError(t, err)
	if d.Dialect == fence.SQLite { // a request there keeps no connection
		leave()
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		left, err := s.Enter(ctx, "full", Big)
		if err == nil {
			left()
		}
		ended <- err
	}()
	select {
	case err = <-ended:
		require.ErrorIs(t, err, context.DeadlineExceeded)
		leave()
	case <-time.After(20 * time.Second):
		leave()
		<-ended
		t.Error("it waits for a connection although its context has ended")
	}
	leave, err = s.Enter(t.Context(), "full", Big)
	require.NoError(t, err, "the connection is back")
	leave()
}
