// Package ledger keeps orders, invoices and reports in PostgreSQL.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// ErrFenced says that the holder of a later token has written.
var ErrFenced = errors.New("fenced: the holder of a later token has written")

// A Ledger is a database.
type Ledger struct{ DB *sql.DB }

const schema = `
CREATE TABLE IF NOT EXISTS orders   (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS invoices (number BIGINT PRIMARY KEY, order_id TEXT NOT NULL UNIQUE REFERENCES orders);
CREATE TABLE IF NOT EXISTS reports  (day TIMESTAMPTZ PRIMARY KEY, invoices BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS fences   (name TEXT PRIMARY KEY, token BIGINT NOT NULL);
INSERT INTO fences VALUES ('invoices', 0), ('reports', 0) ON CONFLICT DO NOTHING;
`

// Migrate makes the tables. It may run again: a replica may die before it is
// recorded that it has.
func (l Ledger) Migrate(ctx context.Context) error {
	_, err := l.DB.ExecContext(ctx, schema)
	return err
}

// Open returns the orders without an invoice.
func (l Ledger) Open(ctx context.Context) (orders []string, err error) {
	rows, err := l.DB.QueryContext(ctx,
		`SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM invoices) ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		orders = append(orders, id)
	}
	return orders, rows.Err()
}

// Invoice gives an order the next number, unless it has one. It returns
// ErrFenced if a write with a higher token was there before.
func (l Ledger) Invoice(ctx context.Context, order string, token uint64) error {
	return l.fenced(ctx, "invoices", token, `INSERT INTO invoices
		SELECT coalesce(max(number), 0) + 1, $1 FROM invoices ON CONFLICT (order_id) DO NOTHING`, order)
}

// Report writes the report of a day, with the token of its run.
func (l Ledger) Report(ctx context.Context, day time.Time, token uint64) error {
	return l.fenced(ctx, "reports", token, `INSERT INTO reports
		SELECT $1, count(*) FROM invoices ON CONFLICT (day) DO UPDATE SET invoices = excluded.invoices`, day)
}

// fenced executes a statement in a transaction that locks the fence first. So
// the check and the write are one, and writers wait for each other.
func (l Ledger) fenced(ctx context.Context, fence string, token uint64, statement string, arg any) error {
	tx, err := l.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	res, err := tx.ExecContext(ctx, `UPDATE fences SET token = $1 WHERE name = $2 AND token <= $1`, int64(token),
		fence)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return ErrFenced
	}
	if _, err := tx.ExecContext(ctx, statement, arg); err != nil {
		return err
	}
	return tx.Commit()
}
