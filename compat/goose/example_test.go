//go:build unix

package quorategoose_test

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/quorate/quorate"
	quorategoose "github.com/quorate/quorate/compat/goose"
)

// Every replica calls this at startup. One of them migrates while the others
// wait.
func Example() {
	_ = func(ctx context.Context, q *quorate.Quorum, db *sql.DB, files fs.FS) error {
		p, err := goose.NewProvider(goose.DialectClickHouse, db, files,
			goose.WithLocker(quorategoose.New(q, "schema")))
		if err != nil {
			return err
		}
		_, err = p.Up(ctx)
		return err
	}
}
