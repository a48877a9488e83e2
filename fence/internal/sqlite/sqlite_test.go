// Package sqlite has the tests on SQLite. They are apart because SQLite in Go is
// so large that staticcheck would take minutes to read it.
package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
)

func TestSQLite(t *testing.T) {
	db, err := sql.Open("sqlite",
		"file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
	require.NoError(t, err)
	defer db.Close()
	suite.SQL(t, suite.Database{
		DB: db, Dialect: fence.SQLite, Levels: []sql.IsolationLevel{sql.LevelDefault},
		Again: func(err error) bool {
			e := (*sqlite.Error)(nil)
			return errors.As(err, &e) && e.Code()&0xff == 5 // SQLITE_BUSY, also SQLITE_BUSY_SNAPSHOT
		},
	})
}
