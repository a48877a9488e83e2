//go:build unix

package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/worker"
)

// replicaEnv makes a test binary a replica, with its terms.
const replicaEnv = "QUORATE_PGTEST_REPLICA"

// lifetime bounds how long a replica connects and waits for the lock.
const lifetime = time.Minute

// terms are what a replica gets at its start.
type terms struct {
	Nodes    []string
	Database string
}

// Main is the TestMain of a package with replicas: the test binary is one where
// [Replicas] has started it. It calls replica, and says "ended" and the error.
// The package of the test registers the driver "postgres". Its examples find
// nodes.
func Main(m *testing.M, replica func(ctx context.Context, q *quorate.Quorum, db *sql.DB) error) {
	var tm terms
	ok, err := worker.Terms(replicaEnv, &tm)
	if !ok {
		e2e.MainWithNodes(m)
		return
	}
	if err == nil {
		err = tm.run(replica)
	}
	fmt.Println("ended", err)
}

func (tm terms) run(replica func(ctx context.Context, q *quorate.Quorum, db *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	q, err := quorate.Connect(ctx, tm.Nodes, quorate.WithTTL(2*time.Second), quorate.WithLogger(nil))
	if err != nil {
		return err
	}
	defer q.Close()
	db, err := sql.Open("postgres", tm.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	return replica(ctx, q, db)
}

// Replicas starts n replicas that use the nodes and the database. They are
// killed at the end of the test. Their lines come out of the channel.
func Replicas(t testing.TB, n int, nodes []string,
	database string) (all []*worker.Worker, lines chan string) {
	t.Helper()
	lines = make(chan string, 100)
	for range n {
		cmd, err := worker.Self(replicaEnv, terms{nodes, database})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.Start(cmd, func(line string) { lines <- line })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Kill() })
		all = append(all, w)
	}
	return all, lines
}

// Runs reports whether a statement runs in the database that begins so.
func Runs(db *sql.DB, begin string) bool {
	var n int
	err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 || '%' AND state = 'active'",
		begin).Scan(&n)
	return err == nil && n == 1
}
