//go:build unix

package quoratemigrate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/stub"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/quorate/quorate"
	quoratemigrate "github.com/quorate/quorate/compat/migrate"
)

// Every replica does this at startup. One of them migrates while the others
// wait.
func Example() {
	// a:6379, b:6379, c:6379.
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	files, err := iofs.New(migrations, ".")
	if err != nil {
		log.Fatal(err)
	}
	locked := quoratemigrate.New(&stub.Stub{}, q, "schema", 4*time.Minute) // stands in for postgres, mysql, …
	db, err := locked.Open("stub://")
	if err != nil {
		log.Fatal(err)
	}

	m, err := migrate.NewWithInstance("files", files, "db", db)
	if err != nil {
		log.Fatal(err)
	}
	m.LockTimeout = 5 * time.Minute
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		log.Fatal(err)
	}
	fmt.Println(m.Version())
	// Output: 2 false <nil>
}
