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

func _() {
//line docs/from-redsync.md:30
err := m.LockContext(ctx)
switch {
case errors.Is(err, quorate.ErrHeld): // another client holds it, and ctx ended
case errors.Is(err, quorate.ErrNoQuorum): // fewer than a majority answered; the error names each node's own error
case errors.Is(err, quorate.ErrClosed): // this process is shutting down
}

}
