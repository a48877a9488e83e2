//go:build unix

package quorategoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	_ "github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	quorategoose "github.com/quorate/quorate/compat/goose"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/pgtest"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, func(ctx context.Context, q *quorate.Quorum, db *sql.DB) error {
		n, err := up(ctx, q, db, false)
		fmt.Println("applied", n)
		return err
	})
}

// migrations are three, of which the second waits as long as there is a row in
// the table slow.
var migrations = fstest.MapFS{
	"1_users.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE users (id INT PRIMARY KEY);")},
	"2_first.sql":  {Data: []byte("-- +goose Up\nINSERT INTO users VALUES (1);\nSELECT pg_sleep(60) FROM slow;")},
	"3_second.sql": {Data: []byte("-- +goose Up\nINSERT INTO users VALUES (2);")},
}

// up migrates, and returns how many migrations it has applied.
func up(ctx context.Context, q *quorate.Quorum, db *sql.DB, session bool) (int, error) {
	l := quorategoose.New(q, "schema")
	option := goose.WithLocker(l)
	if session {
		option = goose.WithSessionLocker(l)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations, option)
	if err != nil {
		return 0, err
	}
	results, err := p.Up(ctx)
	return len(results), err
}

// Five replicas migrate a database at once, on real servers, and the one that
// is at it is killed in the middle. PostgreSQL rolls its migration back, and
// one of the others goes on.
func TestReplicas(t *testing.T) {
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c)
	url := pgtest.Start(t)
	db, err := sql.Open("postgres", url)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE slow (n INT); INSERT INTO slow VALUES (1)")
	require.NoError(t, err)
	first, _ := pgtest.Replicas(t, 1, c.URLs(), url)
	// It is in the second migration.
	require.True(t, e2e.Eventually(func() bool { return pgtest.Runs(db, "SELECT pg_sleep") }))
	_, lines := pgtest.Replicas(t, 4, c.URLs(), url)
	require.True(t, e2e.EventuallyWithin(2*e2e.Patience, func() bool { // the others wait
		h, err := mutex.New(q, "schema").Holder(t.Context())
		return err == nil && h.Waiters == 4
	}))
	require.NoError(t, first[0].Kill())
	_, err = db.Exec("DELETE FROM slow")
	require.NoError(t, err)
	applied := map[string]int{}
	for range 8 {
		applied[e2e.ReceiveWithin(t, 3*e2e.Patience, lines)]++
	}
	assert.Equal(t, map[string]int{"applied 2": 1, "applied 0": 3, "ended <nil>": 4}, applied)
	var users int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM users").Scan(&users))
	assert.Equal(t, 2, users)
}

// It is a lock of a session as well, and says what went wrong.
func TestSession(t *testing.T) {
	db, err := sql.Open("postgres", pgtest.Start(t))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE slow (n INT)")
	require.NoError(t, err)
	c := quoratetest.New(t, 3)
	total := make(chan int, 3)
	for range 3 {
		q := c.Quorum()
		go func() {
			n, err := up(t.Context(), q, db, true)
			assert.NoError(t, err)
			total <- n
		}()
	}
	assert.Equal(t, 3, <-total+<-total+<-total)

	q := c.Quorum()
	l := quorategoose.New(q, "schema")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, l.Lock(t.Context(), db))
	require.ErrorIs(t, quorategoose.New(c.Quorum(), "schema").Lock(ctx, db), quorate.ErrHeld)
	require.NoError(t, q.Close())
	require.ErrorIs(t, l.Unlock(t.Context(), db), quorate.ErrClosed)
}
