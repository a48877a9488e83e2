package rwmutex_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/rwmutex"
)

// Any number of processes can read the catalogue. A process that writes it has
// it to itself.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := rwmutex.New(q, "catalogue"), rwmutex.New(q, "catalogue")
	here.RLock()
	fmt.Println("another reader:", elsewhere.TryRLock())
	fmt.Println("a writer:", elsewhere.TryLock())
	elsewhere.RUnlock()
	here.RUnlock()
	// Output:
	// another reader: true
	// a writer: false
}

// Readers of a value share a claim. With WithLinger the claim remains for a
// while after the last reader unlocks, so most read locks cost no round trip.
func ExampleRWMutex_RLock() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	catalogue := rwmutex.New(q, "catalogue", quorate.WithLinger(time.Second))
	for page := range 3 {
		catalogue.RLock()
		fmt.Println("page", page+1)
		catalogue.RUnlock()
	}
	// Output:
	// page 1
	// page 2
	// page 3
}

// The error shows what the call was waiting for when ctx ended: its turn, or
// nodes.
func ExampleRWMutex_RLockContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := rwmutex.New(q, "catalogue"), rwmutex.New(q, "catalogue")
	elsewhere.Lock()
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = here.RLockContext(soon)
	fmt.Println("a writer has it:", errors.Is(err, quorate.ErrHeld))
	elsewhere.Unlock()
	// Output:
	// a writer has it: true
}

// A reader that does not want to wait learns why it would have to.
func ExampleRWMutex_TryRLockContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := rwmutex.New(q, "catalogue"), rwmutex.New(q, "catalogue")
	elsewhere.Lock()
	if err := here.TryRLockContext(ctx); errors.Is(err, quorate.ErrHeld) {
		fmt.Println("being written: take the old copy")
	}
	elsewhere.Unlock()
	// Output:
	// being written: take the old copy
}

// Do and RDo run a function under the lock. The function's context ends when
// the lock is lost.
func ExampleRWMutex_RDo() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	catalogue := rwmutex.New(q, "catalogue")

	var pages int
	write := catalogue.Do(ctx, func(context.Context) error { pages = 3; return nil })
	read := catalogue.RDo(ctx, func(context.Context) error { fmt.Println(pages, "pages"); return nil })
	fmt.Println(write, read)
	// Output:
	// 3 pages
	// <nil> <nil>
}

// The writer continues as a reader of what it wrote. No other writer can get in
// between.
func ExampleRWMutex_Downgrade() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := rwmutex.New(q, "catalogue"), rwmutex.New(q, "catalogue")
	here.Lock()
	// ... write ...
	if err := here.Downgrade(ctx); err != nil {
		here.Unlock() // the lock has been lost
		log.Fatal(err)
	}
	fmt.Println("another reader:", elsewhere.RLockContext(ctx))
	elsewhere.RUnlock()
	fmt.Println("another writer:", elsewhere.TryLock())
	here.RUnlock() // not Unlock
	// Output:
	// another reader: <nil>
	// another writer: false
}

// A reader that wants to write releases the lock first, and then reads again.
func ExampleRWMutex_Unlock() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	catalogue := rwmutex.New(q, "catalogue")
	catalogue.RLock()
	fmt.Println("read")
	catalogue.RUnlock()
	catalogue.Lock()
	fmt.Println("another process may have written meanwhile: look again, then write")
	catalogue.Unlock()
	// Output:
	// read
	// another process may have written meanwhile: look again, then write
}

// A reader's token is higher than the token of every writer before it, so a
// replica of the data can reject a reader that comes too late.
func ExampleRWMutex_RLease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	catalogue := rwmutex.New(q, "catalogue")

	catalogue.Lock()
	written := catalogue.Lease().Token()
	catalogue.Unlock()
	catalogue.RLock()
	fmt.Println(catalogue.RLease().Token() > written)
	catalogue.RUnlock()
	// Output:
	// true
}

// RLocker is for code that takes a sync.Locker.
func ExampleRWMutex_RLocker() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	catalogue := rwmutex.New(q, "catalogue")
	cond := sync.NewCond(catalogue.RLocker())
	cond.L.Lock()
	fmt.Println("readers may come:", catalogue.TryRLock())
	catalogue.RUnlock()
	cond.L.Unlock()
	// Output:
	// readers may come: true
}

// Holder asks the nodes which process has the lock: the writer, or the reader
// that has held it longest.
func ExampleRWMutex_Holder() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := rwmutex.New(q, "catalogue"), rwmutex.New(q, "catalogue")
	here.RLock()
	elsewhere.RLock()
	h, err := here.Holder(ctx)
	fmt.Println("this process:", h.PID == os.Getpid(), "readers:", h.Holders, "waiters:", h.Waiters, err)
	elsewhere.RUnlock()
	here.RUnlock()
	// Output:
	// this process: true readers: 2 waiters: 0 <nil>
}
