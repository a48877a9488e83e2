package quorate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/redis/go-redis/v9"
)

// Three independent masters, any one of which may fail. Create one Quorum per
// process, and create all primitives from it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := mutex.New(q, "invoices"), mutex.New(q, "invoices")
	here.Lock()
	fmt.Println("locked elsewhere:", elsewhere.TryLock())
	here.Unlock()
	// Output:
	// locked elsewhere: false
}

// Connect takes addresses as they appear in a configuration: one address per
// element, or a list in one string, with or without redis://.
func ExampleConnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // "a:6379, b:6379, c:6379"
	if err != nil {
		log.Fatal(err) // names each node and what it said
	}
	defer q.Close()

	_, err = quorate.Connect(ctx, []string{"a:6379, redis://:secret@b:port", "rediss://c:6380"})
	fmt.Println(errors.Is(err, quorate.ErrInvalid))
	// Output:
	// true
}

// Settings given to Connect are the defaults for all primitives. Settings that
// contradict each other are rejected, and the error says how to fix them.
func ExampleConnect_settings() {
	ctx := context.Background()
	_, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")},
		quorate.WithTTL(12*time.Second), // a longer lease needs a longer guard time:
		// quorate.WithGuard(28*time.Second), // 2*TTL + 2*skew
	)
	fmt.Println(errors.Is(err, quorate.ErrInvalid))
	// Output:
	// true
}

// A single Redis on a developer's machine is restarted often. With this option,
// a restart costs 2 s. The option rejects the list of a real deployment.
func ExampleForDevelopment() {
	ctx := context.Background()
	var opts []quorate.Option
	if os.Getenv("APP_ENV") == "development" {
		opts = append(opts, quorate.ForDevelopment())
	}
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	_, err = quorate.Connect(ctx, []string{"a:6379", "b:6379", "c:6379"}, quorate.ForDevelopment())
	fmt.Println(errors.Is(err, quorate.ErrInvalid))
	// Output:
	// true
}

// Nodes with TLS and a user: the Quorum's own connections use the clients'
// options.
func ExampleNew_tls() {
	pem, err := os.ReadFile("ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	var nodes []redis.UniversalClient
	for _, addr := range []string{"a:6380", "b:6380", "c:6380"} {
		client := redis.NewClient(&redis.Options{
			Addr:      addr,
			Username:  "quorate",
			Password:  os.Getenv("REDIS_PASSWORD"),
			TLSConfig: &tls.Config{RootCAs: pool},
		})
		defer client.Close() // New does not take ownership of the clients
		nodes = append(nodes, client)
	}

	q, err := quorate.New(nodes)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	mutex.New(q, "invoices").Lock() // waits for the nodes too
}

// Three Sentinel sets are three nodes.
func ExampleNewFailoverClient() {
	var nodes []redis.UniversalClient
	for _, sentinels := range []string{"a1:26379,a2:26379,a3:26379", "b1:26379,b2:26379,b3:26379",
		"c1:26379,c2:26379,c3:26379"} {
		nodes = append(nodes, quorate.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster",
			SentinelAddrs: strings.Split(sentinels, ",")}))
	}
	q, err := quorate.New(nodes)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	mutex.New(q, "invoices").Lock()
}

// Check reports what is wrong with the nodes, and what to do about it.
func ExampleQuorum_Check() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	report, err := q.Check(ctx)
	if err != nil {
		log.Fatal(err) // too few nodes answer and vote
	}
	fmt.Println("a majority is ready:", report.Ready >= report.Quorum)
	for _, n := range report.Nodes {
		for _, w := range n.Warnings {
			log.Print(n.Node, ": ", w)
		}
	}
	// Output:
	// a majority is ready: true
}

// Brand-new nodes look like nodes that have lost their data, so they do not
// vote for a guard time. The program that sets them up declares that they are
// new.
func ExampleQuorum_Bootstrap() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	fmt.Println(q.Bootstrap(ctx))
	// Output:
	// <nil>
}

// To shut down, first stop the goroutines that wait for a lock or hold one,
// then close the Quorum.
func ExampleQuorum_Close() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}

	work := make(chan error, 1)
	go func() {
		work <- mutex.New(q, "invoices").Do(ctx, func(ctx context.Context) error {
			<-ctx.Done() // the work, until it is interrupted
			return ctx.Err()
		})
	}()
	stop() // simulates the interrupt
	fmt.Println(errors.Is(<-work, context.Canceled))
	fmt.Println(q.Close())
	// Output:
	// true
	// <nil>
}

// A lease is one hold: its token, the context that ends with it, and its
// deadline.
func ExampleLease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")

	m.Lock()
	first := m.Lease()
	fmt.Println("held:", first.Context().Err() == nil, time.Now().Before(first.ValidUntil()))
	m.Unlock()
	fmt.Println("over:", first.Context().Err(), errors.Is(context.Cause(first.Context()), quorate.ErrReleased))

	m.Lock()
	fmt.Println("the next token is higher:", m.Lease().Token() > first.Token())
	m.Unlock()
	// Output:
	// held: true true
	// over: context canceled true
	// the next token is higher: true
}

// The row rejects a holder that slept through its lease. The comparison is part
// of the write. The column is a BIGINT that starts at 0.
func ExampleLease_sql() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}

	m := mutex.New(q, "invoice 4711")
	err = m.Do(ctx, func(ctx context.Context) error {
		token := int64(m.Lease().Token())
		r, err := db.ExecContext(ctx,
			`UPDATE invoices SET total = $1, fence = $2 WHERE id = $3 AND fence <= $2`, 4200, token, 4711)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); n == 0 {
			return errors.Join(err, errors.New("a later holder has written, or there is no such invoice"))
		}
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

// An error has a kind, the number of nodes that agreed, and what each of the
// other nodes said.
func ExampleError() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")

	err = m.UnlockContext(ctx) // it was never locked
	if e, ok := errors.AsType[*quorate.Error](err); ok {
		fmt.Println(e.Op, e.Name, errors.Is(err, quorate.ErrNotHeld), len(e.Nodes))
	}
	// Output:
	// unlock invoices true 0
}

// A process that locks the same name again and again keeps its claim for a
// while, so most locks cost no round trip. Another process still gets the lock
// immediately.
func ExampleWithLinger() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "cache", quorate.WithLinger(time.Second))
	for n := range 3 {
		m.Lock()
		fmt.Println("entry", n+1)
		m.Unlock() // the nodes still have the claim
	}
	fmt.Println("elsewhere:", mutex.New(q, "cache").LockContext(ctx))
	// Output:
	// entry 1
	// entry 2
	// entry 3
	// elsewhere: <nil>
}

// Without renewal, a lock lasts a fixed time unless Extend is called.
func ExampleWithoutRenewal() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "report", quorate.WithoutRenewal(), quorate.WithTTL(5*time.Second))
	m.Lock()
	defer m.Unlock()
	until := m.Lease().ValidUntil()
	fmt.Println(m.Extend(ctx), m.Lease().ValidUntil().After(until))
	// Output:
	// <nil> true
}

// A stuck holder loses the lock after a minute plus one TTL at the latest. Its
// context ends at that point.
func ExampleWithMaxHold() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "import", quorate.WithMaxHold(time.Minute))
	err = m.Do(ctx, func(ctx context.Context) error { return ctx.Err() })
	fmt.Println(err)
	// Output:
	// <nil>
}
