package shards_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync/atomic"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/shards"
)

// Every replica runs this. Together they serve all shards, each shard in one
// replica.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // as signal.NotifyContext does
	defer stop()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	const n = 8
	var served atomic.Int64
	err = shards.New(q, "mailboxes", n).Run(ctx, func(ctx context.Context, shard int, l quorate.Lease) error {
		if served.Add(1) == n { // this replica is the only one
			stop()
		}
		<-ctx.Done() // serve the shard until then, and fence what it writes with l.Token()
		return nil
	})
	fmt.Println(served.Load(), "shards,", err)
	// Output:
	// 8 shards, quorate: run "mailboxes": context canceled
}
