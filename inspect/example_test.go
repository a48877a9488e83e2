package inspect_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/mutex"
)

// The report shows which process holds the name and which processes are
// waiting.
func ExampleName() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, // a:6379, b:6379, c:6379
		quorate.WithOwner("billing"))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	m.Lock()
	defer m.Unlock()
	r, err := inspect.Name(ctx, q, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	h := r.Holders[0]
	fmt.Println(r.Kind, "held by", h.Label, "this process:", h.PID == os.Getpid(), "waiting:", len(r.Waiters))
	// Output:
	// mutex held by billing this process: true waiting: 0
}

// A listing yields names as they arrive.
func ExampleNames() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "job:42")
	m.Lock()
	defer m.Unlock()
	for e, err := range inspect.Names(ctx, q, "job:*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Name, e.Kind, "waiting:", e.Waiters)
	}
	// Output:
	// job:42 mutex waiting: 0
}

// A process is hung but keeps renewing its lock. Evict ends its hold
// immediately, and the next process gets in.
func ExampleEvict() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	m.Lock()
	l := m.Lease()
	if err := inspect.Evict(ctx, q, "invoices", l.Token()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(context.Cause(l.Context()))
	fmt.Println(m.UnlockContext(ctx))
	// Output:
	// lock lost: an operator has evicted the holder
	// quorate: unlock "invoices": lock lost: an operator has evicted the holder
}

// Watch shows each new holder without claiming the name.
func ExampleWatch() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	for r, err := range inspect.Watch(ctx, q, "invoices") {
		if err != nil {
			log.Println(err) // too few nodes answer; Watch continues
			continue
		}
		fmt.Println("holders:", len(r.Holders), "waiting:", len(r.Waiters))
		if len(r.Holders) > 0 {
			break
		}
		m.Lock()
		defer m.Unlock()
	}
	// Output:
	// holders: 0 waiting: 0
	// holders: 1 waiting: 0
}
