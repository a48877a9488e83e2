package quorate_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// holds counts the holds of a process, by the name.
type holds struct{ begun, ended chan string }

func (h holds) Observe(e quorate.Event) {
	switch e.Kind {
	case quorate.EventAcquired:
		h.begun <- e.Name
	case quorate.EventReleased, quorate.EventLost:
		h.ended <- e.Name
	}
}

// An observer feeds metrics. Here it only remembers.
func ExampleWithObserver() {
	ctx := context.Background()
	h := holds{make(chan string, 10), make(chan string, 10)}
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, quorate.WithObserver(h))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	fmt.Println("work")
	m.Unlock()
	fmt.Println("begun:", <-h.begun)
	fmt.Println("ended:", <-h.ended)
	// Output:
	// work
	// begun: invoices
	// ended: invoices
}
