package fragment

import (
	context "context"
	quorate "github.com/quorate/quorate"
	mutex "github.com/quorate/quorate/mutex"
	sql "database/sql"
	x509 "crypto/x509"
	tls "crypto/tls"
	redis "github.com/redis/go-redis/v9"
	time "time"
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

//line docs/testing.md:17
func connect(ctx context.Context, url string) (*quorate.Quorum, error) {
	q, err := quorate.Connect(ctx, []string{url}, quorate.WithTTL(time.Second), quorate.WithGuard(6*time.Second))
	if err != nil {
		return nil, err
	}
	return q, q.Bootstrap(ctx) // a new server for each test run
}
