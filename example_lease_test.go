package quorate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// A holder that works in small steps gives way when another process is waiting.
func ExampleLease_wanted() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "compaction")
	m.Lock()
	wanted := m.Lease().Wanted()

	other := mutex.New(q, "compaction") // simulates another process
	done := make(chan error)
	go func() {
		err := other.LockContext(ctx)
		if err == nil {
			other.Unlock()
		}
		done <- err
	}()

	for waits := false; !waits; {
		select {
		case <-wanted:
			waits = true
		default: // a step of the work
		}
	}
	m.Unlock()
	fmt.Println("the other has had its turn:", <-done)
	// Output:
	// the other has had its turn: <nil>
}

// A job stops two seconds before it would lose the lock.
func ExampleWithWarning() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	stop := make(chan struct{})
	m := mutex.New(q, "report", quorate.WithTTL(4*time.Second),
		quorate.WithWarning(2*time.Second, func(l quorate.Lease) {
			fmt.Println("held:", l.Context().Err() == nil, "less than two seconds left:",
				time.Until(l.ValidUntil()) < 2*time.Second)
			close(stop)
		}), quorate.WithoutRenewal()) // simulates nodes that cannot be reached
	m.Lock()
	<-stop
	m.Unlock()
	// Output:
	// held: true less than two seconds left: true
}
