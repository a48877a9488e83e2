package quorate_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// printer prints the holds of a process.
type printer struct{}

func (printer) AcquireStart(ctx context.Context, a quorate.AcquireInfo) context.Context {
	return ctx // a tracer of spans adds one here
}

func (printer) AcquireEnd(_ context.Context, r quorate.AcquireResult) {
	fmt.Println(r.Kind, r.Name, "acquired, contended:", r.Contended, "error:", r.Err)
}

func (printer) HoldEnd(_ context.Context, r quorate.HoldResult) {
	fmt.Println(r.Kind, r.Name, "ended, error:", r.Err)
}

// A tracer can feed metrics and traces. Module otel has one.
func ExampleWithTracer() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, quorate.WithTracer(printer{}))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	fmt.Println("work")
	m.Unlock()
	// Output:
	// mutex invoices acquired, contended: false error: <nil>
	// work
	// mutex invoices ended, error: <nil>
}

// downs prints the nodes that go down.
type downs struct{}

func (downs) Observe(e quorate.Event) {
	if e.Kind == quorate.EventNodeDown {
		log.Print(e.Node, " is down: ", e.Err)
	}
}

// An observer receives events that no caller is waiting for.
func ExampleWithObserver() {
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")},
		quorate.WithObserver(downs{}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Close())
	// Output: <nil>
}
