package otel_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/otel"
)

// Without options, New uses the global providers.
func Example() {
	t := otel.New(otel.WithNameFunc(func(_, name string) string {
		class, _, _ := strings.Cut(name, ":") // one time series for all orders
		return class
	}))
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")},
		quorate.WithTracer(t), quorate.WithObserver(t))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "order:4711")
	m.Lock()
	defer m.Unlock()
	fmt.Println("work")
	// Output: work
}
