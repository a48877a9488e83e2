//go:build unix

package quoratemigrate_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/database/stub"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	quoratemigrate "github.com/quorate/quorate/compat/migrate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/pgtest"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, func(_ context.Context, q *quorate.Quorum, db *sql.DB) error { return up(q, db) })
}

// migrations are two, of which the second waits as long as there is a row in
// the table slow.
var migrations = fstest.MapFS{
	"1_users.up.sql": {Data: []byte("CREATE TABLE users (id INT PRIMARY KEY);")},
	"2_first.up.sql": {Data: []byte("INSERT INTO users VALUES (1); SELECT pg_sleep(60) FROM slow;")},
}

// up migrates with the lock of the quorum alone: that of PostgreSQL is left
// out, as it is of a database that has none.
func up(q *quorate.Quorum, db *sql.DB) error {
	source, err := iofs.New(migrations, ".")
	if err != nil {
		return err
	}
	d, err := postgres.WithInstance(db, &postgres.Config{})
	if err != nil {
		return err
	}
	m, err := migrate.NewWithInstance("iofs", source, "postgres",
		quoratemigrate.New(unlocked{d}, q, "schema", 30*time.Second))
	if err != nil {
		return err
	}
	m.LockTimeout = time.Minute
	return m.Up()
}

// unlocked is a driver without a lock.
type unlocked struct{ database.Driver }

func (unlocked) Lock() error   { return nil }
func (unlocked) Unlock() error { return nil }

// Five replicas migrate a database at once, on real servers: one does it, and
// the others find nothing to do. Where the one is killed in the middle, the
// others begin after its lease, and find what migrate calls dirty.
func TestReplicas(t *testing.T) {
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c)
	for _, kill := range []bool{false, true} {
		url := pgtest.Start(t)
		db, err := sql.Open("postgres", url)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec("CREATE TABLE slow (n INT)")
		require.NoError(t, err)
		if !kill {
			_, lines := pgtest.Replicas(t, 5, c.URLs(), url)
			ended := map[string]int{}
			for range 5 {
				ended[e2e.ReceiveWithin(t, 3*e2e.Patience, lines)]++
			}
			assert.Equal(t, map[string]int{"ended <nil>": 1, "ended no change": 4}, ended)
			continue
		}
		_, err = db.Exec("INSERT INTO slow VALUES (1)")
		require.NoError(t, err)
		first, _ := pgtest.Replicas(t, 1, c.URLs(), url)
		// It is in the second migration.
		require.True(t, e2e.Eventually(func() bool { return pgtest.Runs(db, "INSERT INTO users") }))
		_, lines := pgtest.Replicas(t, 4, c.URLs(), url)
		require.True(t, e2e.EventuallyWithin(2*e2e.Patience, func() bool { // the others wait
			h, err := mutex.New(q, "schema").Holder(t.Context())
			return err == nil && h.Waiters == 4
		}))
		require.NoError(t, first[0].Kill())
		for range 4 {
			line := e2e.ReceiveWithin(t, 3*e2e.Patience, lines)
			assert.True(t, strings.HasPrefix(line, "ended Dirty database version 2"), line)
		}
	}
}

// Its errors say what is in the way. Neither lock is left behind.
func TestErrors(t *testing.T) {
	c := quoratetest.New(t, 3)
	q, other := c.Quorum(), c.Quorum()
	inner, err := (&stub.Stub{}).Open("stub://")
	require.NoError(t, err)
	d := quoratemigrate.New(inner, q, "schema", 100*time.Millisecond)
	rival := quoratemigrate.New(inner, other, "schema", 100*time.Millisecond)
	require.NoError(t, d.Lock())
	err = rival.Lock()
	require.ErrorIs(t, err, database.ErrLocked)
	require.ErrorIs(t, err, quorate.ErrHeld)
	require.NoError(t, d.Unlock())
	require.NoError(t, rival.Lock())
	require.NoError(t, rival.Unlock())

	require.NoError(t, inner.Lock()) // of a process without the wrapper
	require.Error(t, d.Lock())
	require.NoError(t, inner.Unlock())
	require.NoError(t, rival.Lock())
	_, err = d.Open("stub://")
	require.ErrorIs(t, err, database.ErrLocked, "another replica may make the table of versions")
	require.NoError(t, rival.Unlock())

	opened, err := d.Open("stub://")
	require.NoError(t, err)
	require.NoError(t, opened.Lock())
	require.ErrorIs(t, rival.Lock(), database.ErrLocked)
	require.NoError(t, q.Close())
	require.ErrorIs(t, opened.Unlock(), quorate.ErrClosed)
	c.Stop(0)
	c.Stop(1)
	err = rival.Lock()
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.False(t, errors.Is(err, database.ErrLocked))
	assert.Panics(t, func() { quoratemigrate.New(inner, other, "schema", 0) })
}
