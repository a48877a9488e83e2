package rwmutex_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/rwmutex"
)

// Any number of processes read the catalogue; who writes it is alone.
func ExampleRWMutex() {
	ctx := context.Background()
	urls, stop := servers()
	defer stop()
	q, err := quorate.Connect(ctx, urls)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	if err := q.Bootstrap(ctx); err != nil { // these servers are brand-new
		panic(err)
	}

	catalogue := rwmutex.New(q, "catalogue")
	elsewhere := rwmutex.New(q, "catalogue") // as another process would have it
	catalogue.RLock()
	fmt.Println("another reader:", elsewhere.TryRLock())
	fmt.Println("a writer:", elsewhere.TryLock())
	elsewhere.RUnlock()
	catalogue.RUnlock()
	// Output:
	// another reader: true
	// a writer: false
}

func servers() (urls []string, stop func()) {
	c, err := redistest.Run(3)
	if err != nil {
		panic(err)
	}
	return c.URLs(), func() { _ = c.Close() }
}
