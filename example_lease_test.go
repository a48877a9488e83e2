package quorate_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// A holder with work in small steps gives way when another process waits.
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

	other := mutex.New(q, "compaction") // stands for another process
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
