//go:build unix

package fence_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
	"github.com/quorate/quorate/internal/testkit/pgtest"
)

// levels are those of PostgreSQL and MariaDB.
var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	db := open(t, "postgres", pgtest.Start(t))
	suite.SQL(t, suite.Database{
		DB: db, Dialect: fence.PostgreSQL, Levels: levels,
		Waiting: func() bool { return pgtest.Runs(db, "INSERT INTO quorate_fences") },
		Again: func(err error) bool {
			e := (*pq.Error)(nil)
			// A serialization failure, a deadlock.
			return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
		},
	})
	t.Run("paused in its transaction", func(t *testing.T) { testPaused(t, db) })
}

func open(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// PostgreSQL ends the transaction of a process that was paused in the middle.
// So the next holder does not wait for it, and its late commit fails.
func testPaused(t *testing.T, db *sql.DB) {
	ctx := t.Context()
	paused, err := db.Begin()
	require.NoError(t, err)
	_, err = paused.Exec("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
	require.NoError(t, err)
	require.NoError(t, fence.PostgreSQL.Check(ctx, paused, "paused", suite.Big))
	next, err := db.Begin()
	require.NoError(t, err)
	require.NoError(t, fence.PostgreSQL.Check(ctx, next, "paused", suite.Big+1))
	require.NoError(t, next.Commit())
	require.Error(t, paused.Commit())
	again, err := db.Begin()
	require.NoError(t, err)
	defer func() { _ = again.Rollback() }()
	require.ErrorIs(t, fence.PostgreSQL.Check(ctx, again, "paused", suite.Big), fence.ErrStale)
}
