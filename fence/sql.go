package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A Dialect is the SQL of a database.
type Dialect int

// The databases.
const (
	PostgreSQL Dialect = iota + 1
	MySQL              // and MariaDB, with InnoDB; tested with MariaDB 10.11 only
	SQLite             // 3.35 or later
)

// A Tx is a transaction: an [sql.Tx], or what wraps one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// statements are those of one dialect.
type statements struct {
	schema string
	// raise makes the token the highest if it is. It locks the row until the
	// transaction ends. Where it returns no row, highest reads what it has left.
	raise, highest string
	// share locks the row against raise, but not against share.
	share string
}

const (
	table = "CREATE TABLE IF NOT EXISTS quorate_fences (name TEXT PRIMARY KEY, token BIGINT NOT NULL)"
	// A WHERE in place of the CASE would leave a row that refuses without a
	// lock, and would not return its token.
	upsert = `INSERT INTO quorate_fences (name, token) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET token =
		CASE WHEN excluded.token > quorate_fences.token THEN excluded.token ELSE quorate_fences.token END
		RETURNING token`
)

var dialects = map[Dialect]statements{
	PostgreSQL: {
		schema: table,
		raise:  upsert,
		share:  "SELECT token FROM quorate_fences WHERE name = $1 FOR SHARE",
	},
	SQLite: {schema: table, raise: upsert},
	MySQL: {
		// Bytes, because MySQL's texts are equal if they differ in case.
		schema: "CREATE TABLE IF NOT EXISTS quorate_fences " +
			"(name VARBINARY(255) PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB",
		raise: "INSERT INTO quorate_fences (name, token) VALUES (?, ?) " +
			"ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)",
		highest: "SELECT token FROM quorate_fences WHERE name = ? FOR UPDATE",
		share:   "SELECT token FROM quorate_fences WHERE name = ? LOCK IN SHARE MODE",
	},
}

// Schema returns the statement that creates the table quorate_fences unless it
// exists. Add it to your migrations, which one process at a time runs. The table
// has one row for each name. Schema panics if d is none of the constants.
func (d Dialect) Schema() string { return d.statements().schema }

func (d Dialect) statements() statements {
	s, ok := dialects[d]
	if !ok {
		panic(fmt.Sprintf("fence: there is no Dialect(%d): use PostgreSQL, MySQL or SQLite", int(d)))
	}
	return s
}

// Check lets a transaction write under a token, or returns [ErrStale] if a
// transaction with a higher token of the same name was committed before. Then
// roll back.
//
// Call Check first in the transaction, before what the work reads. Check locks
// the name until the transaction ends, so checks of other transactions wait. If
// this one commits, those with lower tokens are refused from then on. That holds
// at every isolation level, and for the first use of a name too.
//
// Check returns the database's error, wrapped, if a statement fails: at
// REPEATABLE READ and SERIALIZABLE that can be a serialization failure, in MySQL
// a deadlock, in SQLite a busy database. Roll back and run the transaction
// again, as for any other statement.
//
// A process that is paused inside its transaction keeps the name locked. Let the
// server end such a transaction (in PostgreSQL, set
// idle_in_transaction_session_timeout), or the next holder waits for it.
//
// Check refuses an [sql.DB], because the write would not be in the same
// transaction. Don't roll back to a savepoint that was set before Check. Check
// panics if d is none of the constants.
func (d Dialect) Check(ctx context.Context, tx Tx, name string, token uint64) error {
	s := d.statements()
	if err := validate(name, token); err != nil {
		return err
	}
	if _, pool := tx.(interface{ Stats() sql.DBStats }); pool {
		return fmt.Errorf("fence %q: Check needs the transaction of the write, not the *sql.DB: call BeginTx", name)
	}
	highest, err := s.run(ctx, tx, name, token)
	if err != nil {
		return explain(name, err)
	}
	return compare(name, token, highest)
}

// run raises the fence and returns the highest token.
func (s statements) run(ctx context.Context, tx Tx, name string, token uint64) (highest uint64, err error) {
	if s.highest == "" {
		err = tx.QueryRowContext(ctx, s.raise, name, int64(token)).Scan(&highest)
		return highest, err
	}
	if _, err := tx.ExecContext(ctx, s.raise, name, int64(token), int64(token)); err != nil {
		return 0, err
	}
	// MySQL's count of affected rows is the same for an equal and a lower token.
	err = tx.QueryRowContext(ctx, s.highest, name).Scan(&highest)
	return highest, err
}

// explain adds what to do if the table is missing.
func explain(name string, err error) error {
	var hint string
	if text := err.Error(); strings.Contains(text, "quorate_fences") {
		for _, missing := range []string{"no such table", "does not exist", "doesn't exist"} {
			if strings.Contains(text, missing) {
				hint = " (create the table with the statement that Schema returns)"
			}
		}
	}
	return fmt.Errorf("fence %q: %w%s", name, err, hint)
}

// Store returns a [Store] that keeps its fences in a database, for a service
// with several processes. With SQLite, only the requests of one process wait for
// each other. The store needs the table of [Dialect.Schema].
//
// While a request is in, the store uses one connection of db and locks the row of
// its name. So give it a db of its own if the handler uses the database too, or
// requests could wait for connections that requests hold. If that connection
// breaks, the lock on the row is gone before the request has ended. A handler
// that writes to a database is safe from this too if it calls [Dialect.Check]
// with the [Token] of its request.
//
// Store panics if d is none of the constants.
func (d Dialect) Store(db *sql.DB) Store {
	return &sqlStore{dialect: d, statements: d.statements(), db: db}
}

type sqlStore struct {
	dialect    Dialect
	statements statements
	db         *sql.DB
	local      Memory // for SQLite, which locks no rows
}

// Enter implements [Store].
//
// The token is committed before the work begins: if it were committed after the
// work, a process that crashes in between would leave a write that the fence
// does not know. To keep a higher token out until the work has ended, a second
// transaction then shares the row. Equal tokens share it.
func (s *sqlStore) Enter(ctx context.Context, name string, token uint64) (leave func(), err error) {
	if err := validate(name, token); err != nil {
		return nil, err
	}
	if s.statements.share == "" {
		if leave, err = s.local.Enter(ctx, name, token); err != nil {
			return nil, err
		}
		if err := s.raise(ctx, name, token); err != nil {
			leave()
			return nil, err
		}
		return leave, nil
	}
	for {
		highest, leave, err := s.share(ctx, name)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return nil, explain(name, err)
		case err == nil && highest == token:
			return leave, nil
		case err == nil:
			leave()
		}
		if err := s.raise(ctx, name, token); err != nil {
			return nil, err
		}
	}
}

// options ask for the level at which a statement that had to wait sees what it
// has waited for. SQLite has one level only, and its drivers refuse others.
func (s *sqlStore) options() *sql.TxOptions {
	if s.dialect == SQLite {
		return nil
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// raise checks in a transaction of its own. It waits until lower tokens have
// left.
func (s *sqlStore) raise(ctx context.Context, name string, token uint64) error {
	tx, err := s.db.BeginTx(ctx, s.options())
	if err != nil {
		return explain(name, err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := s.dialect.Check(ctx, tx, name, token); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return explain(name, err)
	}
	return nil
}

// share returns the highest token, and keeps it until leave is called.
func (s *sqlStore) share(ctx context.Context, name string) (highest uint64, leave func(), err error) {
	// The transaction lasts as long as the work, also if ctx ends before.
	tx, err := s.db.BeginTx(context.WithoutCancel(ctx), s.options())
	if err != nil {
		return 0, nil, err
	}
	leave = func() { _ = tx.Rollback() } // it has written nothing
	if err := tx.QueryRowContext(ctx, s.statements.share, name).Scan(&highest); err != nil {
		leave()
		return 0, nil, err
	}
	return highest, leave, nil
}
