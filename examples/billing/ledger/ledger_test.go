//go:build unix

package ledger_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/billing/ledger"
	"github.com/quorate/quorate/internal/testkit/pgtest"
)

// The statements do on PostgreSQL what the tests of the service take the ledger
// to do.
func TestLedger(t *testing.T) {
	db, err := sql.Open("postgres", pgtest.Start(t))
	require.NoError(t, err)
	defer db.Close()
	l, ctx, day := ledger.Ledger{DB: db}, t.Context(), time.Now().UTC().Truncate(24*time.Hour)
	require.NoError(t, l.Migrate(ctx))
	require.NoError(t, l.Migrate(ctx))
	_, err = db.Exec(`INSERT INTO orders VALUES ('a'), ('b'), ('c')`)
	require.NoError(t, err)

	const token = 1<<62 + 1
	require.NoError(t, l.Invoice(ctx, "a", token))
	require.NoError(t, l.Invoice(ctx, "a", token))
	require.NoError(t, l.Invoice(ctx, "b", token+1))
	require.ErrorIs(t, l.Invoice(ctx, "c", token), ledger.ErrFenced)
	open, err := l.Open(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, open)
	require.NoError(t, l.Report(ctx, day, 5))
	require.NoError(t, l.Invoice(ctx, "c", token+1))
	require.NoError(t, l.Report(ctx, day, 6))
	require.ErrorIs(t, l.Report(ctx, day, 5), ledger.ErrFenced)

	var last, count, reported int
	require.NoError(t,
		db.QueryRow(`SELECT max(number), count(*), (SELECT invoices FROM reports) FROM invoices`).Scan(&last,
			&count, &reported))
	assert.Equal(t, []int{3, 3, 3}, []int{last, count, reported}, "numbers without gaps")
}
