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
	log "log"
	semaphore "github.com/quorate/quorate/semaphore"
	once "github.com/quorate/quorate/once"
	leader "github.com/quorate/quorate/leader"
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
//line README.md:70
// Wait with a context. The error says whether the turn or the nodes were missing.
if err := m.LockContext(ctx); errors.Is(err, quorate.ErrNoQuorum) {
	log.Print("too few nodes answer: ", err)
}

// Run something whose context ends when the lock is lost.
err := m.Do(ctx, func(ctx context.Context) error { return export(ctx) })

// Never more than 16 in use over the whole fleet.
sem := semaphore.NewWeighted(q, "encoders", 16)
err = sem.Acquire(ctx, 2)

// One replica migrates. The others wait, and all go on when it is done.
err = once.New(q, "migrate to v7").DoContext(ctx, migrate)

// One process of the fleet leads. The others stand in line.
err = leader.New(q, "scheduler", "").Run(ctx, leader.Callbacks{
	OnStartedLeading: func(ctx context.Context, l quorate.Lease) { schedule(ctx, l.Token()) },
})

}
