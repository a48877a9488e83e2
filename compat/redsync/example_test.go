package redsync_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/compat/redsync" // was github.com/go-redsync/redsync/v4
)

// Only the import path and the argument of New differ from code that uses
// redsync.
func Example() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	rs := redsync.New(q)
	m := rs.NewMutex("invoices")
	if err := m.LockContext(ctx); err != nil {
		log.Fatal(err)
	}
	ok, err := m.UnlockContext(ctx)
	fmt.Println(ok, err)
	// Output:
	// true <nil>
}
