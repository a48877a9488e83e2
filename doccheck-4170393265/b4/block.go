package fragment

import (
	context "context"
	quorate "github.com/quorate/quorate"
	mutex "github.com/quorate/quorate/mutex"
	sql "database/sql"
	x509 "crypto/x509"
	tls "crypto/tls"
	redis "github.com/redis/go-redis/v9"
	errors "errors"
)

var (
	ctx         context.Context
	q           *quorate.Quorum
	m           *mutex.Mutex
	db          *sql.DB
	doc         string
	password    string
	pool        *x509.CertPool
	certificate tls.Certificate
	nodes       []redis.UniversalClient
	store       interface{ Put(context.Context, string, uint64) error }
)

func export(context.Context) error           { return nil }
func migrate(context.Context) error          { return nil }
func load() string                           { return "" }
func schedule(context.Context, uint64)       {}
func work()                                  {}

//line docs/fencing.md:22
// Writes the balance unless a later holder has written already.
func setBalance(ctx context.Context, db *sql.DB, id string, balance int64, token uint64) error {
	res, err := db.ExecContext(ctx, `UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
		balance, int64(token), id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errors.New("fenced: a later holder has written, or there is no such account")
}
