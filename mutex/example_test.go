package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
)

// Use it like sync.Mutex. Create one Quorum per process.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	fmt.Println("no other process numbers invoices now")
	m.Unlock()
	// Output:
	// no other process numbers invoices now
}

// TryLock is for work that can be skipped if another process is already doing
// it.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := mutex.New(q, "nightly report"), mutex.New(q, "nightly report")
	if here.TryLock() {
		fmt.Println("this process makes the report")
		defer here.Unlock()
	}
	if !elsewhere.TryLock() {
		fmt.Println("another process makes it already")
	}
	// Output:
	// this process makes the report
	// another process makes it already
}

// TryLockContext reports why it did not get the lock: another holder, or too
// few nodes.
func ExampleMutex_TryLockContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := mutex.New(q, "nightly report"), mutex.New(q, "nightly report")
	here.Lock()
	defer here.Unlock()
	switch err := elsewhere.TryLockContext(ctx); {
	case errors.Is(err, quorate.ErrHeld):
		fmt.Println("another process makes the report")
	case errors.Is(err, quorate.ErrNoQuorum):
		fmt.Println("look at the nodes:", err)
	}
	// Output:
	// another process makes the report
}

// The error shows what the call was waiting for when ctx ended: its turn, or
// nodes.
func ExampleMutex_LockContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := mutex.New(q, "invoices"), mutex.New(q, "invoices")
	elsewhere.Lock()
	defer elsewhere.Unlock()
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = here.LockContext(soon)
	fmt.Println("too late:", errors.Is(err, context.DeadlineExceeded))
	fmt.Println("held:", errors.Is(err, quorate.ErrHeld))
	// Output:
	// too late: true
	// held: true
}

// UnlockContext reports whether the lock was held until the end.
func ExampleMutex_UnlockContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	switch err := m.UnlockContext(ctx); {
	case err == nil:
		fmt.Println("free, on a majority of the nodes")
	case errors.Is(err, quorate.ErrLost):
		fmt.Println("another process may have held it meanwhile")
	}
	// Output:
	// free, on a majority of the nodes
}

// Do cancels the work's context if the lock is lost, and always unlocks, no
// matter how the work ends.
func ExampleMutex_Do() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	err = m.Do(ctx, func(ctx context.Context) error {
		for n := range 3 {
			if ctx.Err() != nil { // the lock is lost: another process may be at work
				return ctx.Err()
			}
			fmt.Println("invoice", n+1)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// invoice 1
	// invoice 2
	// invoice 3
	// <nil>
}

// The lease provides the token for the resource and the context for the work.
func ExampleMutex_Lease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	defer m.Unlock()
	lease := m.Lease()
	var highest uint64 // kept by the resource
	write := func(token uint64) error {
		if token < highest {
			return errors.New("a later holder has written")
		}
		highest = token
		return nil
	}
	if lease.Context().Err() == nil {
		fmt.Println(write(lease.Token()))
	}
	// Output:
	// <nil>
}

// Extend confirms the lock before a step that must not be interrupted.
func ExampleMutex_Extend() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	m.Lock()
	defer m.Unlock()
	before := m.Lease().ValidUntil()
	if err := m.Extend(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("a full TTL from now:", m.Lease().ValidUntil().After(before))
	// Output:
	// a full TTL from now: true
}

// Holder asks the nodes which process has the lock.
func ExampleMutex_Holder() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	m := mutex.New(q, "invoices")
	_, err = m.Holder(ctx)
	fmt.Println("free:", errors.Is(err, quorate.ErrNotHeld))
	m.Lock()
	h, err := m.Holder(ctx)
	fmt.Println("this process:", h.PID == os.Getpid(), "waiters:", h.Waiters, err)
	m.Unlock()
	// Output:
	// free: true
	// this process: true waiters: 0 <nil>
}

// A transfer needs both accounts. The order of the names does not matter: two
// transfers never deadlock.
func ExampleAll() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	both := mutex.All(q, []string{"account 7", "account 3"})
	if err := both.LockContext(ctx); err != nil {
		log.Fatal(err)
	}
	defer both.Unlock()
	fmt.Println("both are held:", both.Lease("account 3").Token() > 0, both.Lease("account 7").Token() > 0)
	// Output:
	// both are held: true true
}

// Options apply to all names.
func ExampleAll_options() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	accounts := mutex.All(q, []string{"account 3", "account 7"}, quorate.WithMaxHold(time.Minute))
	fmt.Println(accounts.Do(ctx, func(ctx context.Context) error { return ctx.Err() }))
	// Output:
	// <nil>
}

// While a fleet moves to other servers, each process locks the name on both the
// old and the new ones.
func ExampleBoth() {
	ctx := context.Background()
	old, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379
	if err != nil {
		log.Fatal(err)
	}
	defer old.Close()
	new, err := quorate.Connect(ctx, []string{os.Getenv("NEW_NODES")}) // b:6379, c:6379, d:6379
	if err != nil {
		log.Fatal(err)
	}
	defer new.Close()

	err = mutex.Both(old, new, "invoices").Do(ctx, func(ctx context.Context) error {
		fmt.Println("a process that has not moved yet:", mutex.New(old, "invoices").TryLock())
		fmt.Println("a process that has moved:", mutex.New(new, "invoices").TryLock())
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// a process that has not moved yet: false
	// a process that has moved: false
	// <nil>
}

// Tokens from different sets are not comparable, so the resource keeps a fence
// for each set.
func ExampleGroup_Leases() {
	ctx := context.Background()
	old, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379
	if err != nil {
		log.Fatal(err)
	}
	defer old.Close()
	new, err := quorate.Connect(ctx, []string{os.Getenv("NEW_NODES")}) // b:6379, c:6379, d:6379
	if err != nil {
		log.Fatal(err)
	}
	defer new.Close()

	highest := map[string]uint64{} // kept by the resource
	check := func(fence string, token uint64) error {
		if token < highest[fence] {
			return errors.New("a later holder has written")
		}
		highest[fence] = token
		return nil
	}
	both := mutex.Both(old, new, "invoices")
	if err := both.LockContext(ctx); err != nil {
		log.Fatal(err)
	}
	defer both.Unlock()
	l := both.Leases()
	fmt.Println(check("invoices", l[0].Token()), check("invoices, new servers", l[1].Token()))
	// Output:
	// <nil> <nil>
}

// Do runs a function while all names are held.
func ExampleGroup_Do() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	err = mutex.All(q, []string{"account 7", "account 3"}).Do(ctx, func(ctx context.Context) error {
		fmt.Println("both accounts are ours")
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// both accounts are ours
	// <nil>
}
