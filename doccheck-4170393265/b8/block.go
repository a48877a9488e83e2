//line docs/shutdown.md:10
package program

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	q, err := quorate.Connect(ctx, []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close() // after the work has returned

	m := mutex.New(q, "nightly-report")
	err = m.Do(ctx, func(ctx context.Context) error {
		return report(ctx) // returns soon after ctx has ended
	})
	if err != nil {
		log.Print(err)
	}
}

func report(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
