package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// It is used as sync.Mutex is. A Quorum is made once per process.
func Example() {
	ctx := context.Background()
	urls, stop := servers() // in real life: redis://a:6379, redis://b:6379, redis://c:6379
	defer stop()

	q, err := quorate.Connect(ctx, urls)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := q.Bootstrap(ctx); err != nil { // once in the life of the servers
		log.Fatal(err)
	}

	m := mutex.New(q, "invoices")
	m.Lock()
	fmt.Println("nobody else numbers invoices now")
	m.Unlock()

	fmt.Println("free again:", m.TryLock())
	m.Unlock()
	// Output:
	// nobody else numbers invoices now
	// free again: true
}

// Do ends the work's context when the lock is lost, and gives the lock back
// however the work ends.
func ExampleMutex_Do() {
	q, stop := quorum()
	defer stop()
	m := mutex.New(q, "invoices")

	err := m.Do(context.Background(), func(ctx context.Context) error {
		// Storage that refuses a token below one it has seen is safe even from a
		// holder that was asleep when it lost the lock.
		token := m.Lease().Token()
		return store(ctx, "invoice 4711", token)
	})
	fmt.Println(err)
	// Output:
	// stored invoice 4711
	// <nil>
}

// A wait that ends says what it was waiting for.
func ExampleMutex_LockContext() {
	q, stop := quorum()
	defer stop()
	here, elsewhere := mutex.New(q, "invoices"), mutex.New(q, "invoices")
	elsewhere.Lock()
	defer elsewhere.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := here.LockContext(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, quorate.ErrHeld), errors.Is(err, quorate.ErrNoQuorum))
	// Output: true true false
}
