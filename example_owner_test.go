package quorate_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// The note of a hold tells operators what the hold is for.
func ExampleWithNote() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	err = m.Do(quorate.WithNote(ctx, "order 4711"), func(ctx context.Context) error {
		h, err := m.Holder(ctx)
		fmt.Println(h.Note)
		return err
	})
	fmt.Println(err)
	// Output:
	// order 4711
	// <nil>
}

// The label of a process is attached to its claims. Any client can see it.
func ExampleWithOwner() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, // a:6379, b:6379, c:6379
		quorate.WithOwner("billing@pod-7"))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m := mutex.New(q, "invoices")
	m.Lock()
	defer m.Unlock()
	h, err := m.Holder(ctx)
	fmt.Println(h.Label, err)
	// Output:
	// billing@pod-7 <nil>
}
