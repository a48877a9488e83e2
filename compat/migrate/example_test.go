//go:build unix

package quoratemigrate_test

import (
	"errors"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"

	"github.com/quorate/quorate"
	quoratemigrate "github.com/quorate/quorate/compat/migrate"
)

// Every replica calls this as it starts. One migrates, and the others wait.
func Example() {
	_ = func(q *quorate.Quorum, files source.Driver, db database.Driver) error {
		m, err := migrate.NewWithInstance("files", files, "db", quoratemigrate.New(db, q, "schema", 4*time.Minute))
		if err != nil {
			return err
		}
		m.LockTimeout = 5 * time.Minute
		if err := m.Up(); !errors.Is(err, migrate.ErrNoChange) {
			return err
		}
		return nil
	}
}
