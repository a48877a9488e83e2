package suite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
)

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
	h.Logf("%d wrote, %d refused, %d to run again, %d violations", h.wrote.Load(), h.refused.Load(),
		h.failed.Load(), len(h.found))
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
	if _, err := tx.Exec(fmt.Sprintf("UPDATE written SET token = %d WHERE name = %s",
		token, quote(h.name))); err != nil {
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
