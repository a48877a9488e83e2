package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// A Dialect is a database's dialect of SQL.
type Dialect int

// The databases.
const (
	PostgreSQL Dialect = iota + 1
	MySQL              // and MariaDB, with InnoDB; tested with MariaDB 10.11 only
	SQLite             // 3.35 or later
)

// A Tx is a transaction: an [sql.Tx] or a wrapper around one.
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

// Schema returns the statement that creates the table quorate_fences if it does
// not exist. Add it to your migrations, which should be run by one process at a
// time. The table has one row for each name. Schema panics if d is not one of
// the constants.
func (d Dialect) Schema() string { return d.statements().schema }

func (d Dialect) statements() statements {
	s, ok := dialects[d]
	if !ok {
		panic(fmt.Sprintf("fence: there is no Dialect(%d): use PostgreSQL, MySQL or SQLite", int(d)))
	}
	return s
}

// Check allows a transaction to write with a token, or returns [ErrStale] if a
// transaction with a higher token for the same name has already been committed.
// In that case, roll back.
//
// Call Check first in the transaction, before you read any data. It locks the
// name until the transaction ends, so the checks of other transactions wait.
// Once this transaction has committed, lower tokens are rejected. This is true
// at every isolation level, even the first time a name is used.
//
// If a statement fails, Check returns the database's error, wrapped. It can be
// a serialization failure (at REPEATABLE READ and SERIALIZABLE), a deadlock (in
// MySQL) or a busy database (in SQLite). Roll back and retry the transaction,
// as you would for any other statement.
//
// A process that is paused inside its transaction keeps the name locked. Have
// the server abort such transactions (in PostgreSQL, set
// idle_in_transaction_session_timeout); otherwise the next holder
// waits until the process resumes.
//
// Check rejects an [sql.DB], because the write would not be in the same
// transaction. Do not roll back to a savepoint that was set before Check. Check
// panics if d is not one of the constants.
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
// with several processes. With SQLite, only requests within one process wait
// for each other. The store needs the table created by [Dialect.Schema].
//
// While a request is running, the store uses one connection of db and locks the
// row of the name. If the handler also uses the database, give the store a
// separate db; otherwise requests could wait for connections held by other
// requests. If the connection breaks, the row is unlocked before the request is
// done. A handler that writes to a database can guard against this by calling
// [Dialect.Check] with the [Token] of its request.
//
// Store panics if d is not one of the constants.
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
// The token is committed before the work starts. If it were committed
// afterwards, a process that crashes in between would leave a write that the
// fence does not know about. To keep higher tokens out until the work is done,
// a second transaction then takes a shared lock on the row, which requests with
// the same token can share.
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
	// A full pool is waited for until ctx ends. The transaction lasts as long as
	// the work, also if ctx ends before.
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, nil, err
	}
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), s.options())
	if err != nil {
		_ = conn.Close()
		return 0, nil, err
	}
	leave = func() {
		_ = tx.Rollback() // it has written nothing
		_ = conn.Close()
	}
	if err := tx.QueryRowContext(ctx, s.statements.share, name).Scan(&highest); err != nil {
		leave()
		return 0, nil, err
	}
	return highest, leave, nil
}
