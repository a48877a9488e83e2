// Package suite is what each kind of fence must do.
package suite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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
	_, err := d.ExecContext(t.Context(), "CREATE TABLE written (name VARCHAR(99) PRIMARY KEY, token BIGINT NOT NULL)")
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
		require.ErrorContains(t, err, fmt.Sprintf("fence %q: token %d is stale, a later holder with token %d", step.name, step.token, step.highest))
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

// hostile is many transactions with random tokens, levels, delays and ends. All
// of them write the same row, with nothing but the check in between.
type hostile struct {
	*testing.T
	Database
	name                   string
	next                   atomic.Uint64
	highest                atomic.Uint64 // that is known to be committed
	wrote, refused, failed atomic.Int64
	mu                     sync.Mutex
	found                  []string // violations
}

func (d Database) newHostile(t *testing.T, name string) *hostile {
	_, err := d.ExecContext(t.Context(), "INSERT INTO written VALUES ("+quote(name)+", 0)")
	require.NoError(t, err)
	return &hostile{T: t, Database: d, name: name}
}

func quote(name string) string { return "'" + name + "'" }

type checker func(ctx context.Context, tx fence.Tx, name string, token uint64) error

func (h *hostile) run(check checker) {
	const writers, each = 8, 25
	ctx, cancel := context.WithCancel(h.Context())
	var writing, watching sync.WaitGroup
	watching.Go(func() { h.watch(ctx) })
	for range writers {
		writing.Go(func() {
			for range each {
				token := Big + h.next.Add(1)
				pause() // so a later one may come first
				if err := h.write(check, token); err != nil {
					h.report("error: %v", err)
				}
			}
		})
	}
	writing.Wait()
	cancel()
	watching.Wait()
	h.Logf("%d wrote, %d refused, %d to run again, %d violations", h.wrote.Load(), h.refused.Load(), h.failed.Load(), len(h.found))
}

// write is one transaction.
func (h *hostile) write(check checker, token uint64) error {
	before := h.highest.Load()
	tx, err := h.BeginTx(h.Context(), &sql.TxOptions{Isolation: h.Levels[rand.IntN(len(h.Levels))]})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if rand.IntN(4) == 0 { // the snapshot is older than the check
		if _, err := h.written(h.Context(), tx); err != nil {
			return h.unless(err)
		}
		pause()
	}
	switch err := check(h.Context(), tx, h.name, token); {
	case errors.Is(err, fence.ErrStale):
		h.refused.Add(1)
		return nil
	case err != nil:
		return h.unless(err)
	case token < before:
		h.report("token %d was let in after %d was committed", token, before)
	}
	pause()
	if _, err := tx.Exec(fmt.Sprintf("UPDATE written SET token = %d WHERE name = %s", token, quote(h.name))); err != nil {
		return h.unless(err)
	}
	pause()
	if rand.IntN(5) == 0 {
		return nil // rolled back
	}
	if err := tx.Commit(); err != nil {
		return h.unless(err)
	}
	h.wrote.Add(1)
	for {
		old := h.highest.Load()
		if old >= token || h.highest.CompareAndSwap(old, token) {
			return nil
		}
	}
}

// watch reads what was committed. The token there must never fall.
func (h *hostile) watch(ctx context.Context) {
	for last := uint64(0); ctx.Err() == nil; {
		token, err := h.written(h.Context(), h.DB)
		if err != nil {
			h.report("error: %v", h.unless(err))
			return
		}
		if token < last {
			h.report("token %d has overwritten what token %d wrote", token, last)
		}
		last = token
		time.Sleep(200 * time.Microsecond)
	}
}

func (h *hostile) written(ctx context.Context, tx fence.Tx) (token uint64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT token FROM written WHERE name = "+quote(h.name)).Scan(&token)
	return token, err
}

// settled checks what is there in the end: the highest token.
func (h *hostile) settled() {
	token, err := h.written(h.Context(), h.DB)
	require.NoError(h, err)
	assert.Equal(h, h.highest.Load(), token)
	require.ErrorIs(h, h.once(h.T, h.name, token-1), fence.ErrStale)
	require.NoError(h, h.once(h.T, h.name, token))
}

// unless is nil for an error that asks for the transaction to be run again.
func (h *hostile) unless(err error) error {
	if h.Again(err) {
		h.failed.Add(1)
		return nil
	}
	return err
}

func (h *hostile) report(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, fmt.Sprintf(format, args...))
}

func pause() {
	if d := rand.IntN(4); d > 0 {
		time.Sleep(time.Duration(rand.IntN(d*1000)) * time.Microsecond)
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
