package members_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/members"
)

// A node is permanently dead, and an empty server takes its place. Nothing is
// interrupted. You can update the clients' lists one at a time.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{"lock-a:6379, lock-b:6379, lock-c:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := members.Replace(ctx, q, "lock-c:6379", "redis://lock-d:6379"); err != nil {
		log.Fatal(err) // says what the set is now, and what to do
	}
}

// Any client can ask which nodes are in the set and which settings all clients
// share.
func ExampleGet() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	set, err := members.Get(ctx, q)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(set.Members), "members,", set.Stage, "guard time", set.Settings.Guard)
	// Output:
	// 3 members, stable guard time 20s
}

// Three nodes become five. Each new node is an empty server.
func ExampleAdd() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{"lock-a:6379, lock-b:6379, lock-c:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := members.Add(ctx, q, "lock-d:6379", "lock-e:6379"); err != nil {
		log.Fatal(err)
	}
}

// Five nodes become three, one of which may fail. Stop the servers afterwards.
func ExampleRemove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := members.Remove(ctx, q, "lock-d:6379", "lock-e:6379"); err != nil {
		log.Fatal(err)
	}
}

// Every member gets a second address, with TLS. You can then switch the clients
// over one at a time.
func ExampleAddAddr() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{"lock-a:6379, lock-b:6379, lock-c:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	for _, host := range []string{"lock-a", "lock-b", "lock-c"} {
		if err := members.AddAddr(ctx, q, host+":6379", "rediss://"+host+":6380"); err != nil {
			log.Fatal(err)
		}
	}
}

// A server has a new address and has kept its data.
func ExampleMove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := members.Move(ctx, q, "10.0.0.7:6379", "lock-c:6379"); err != nil {
		log.Fatal(err)
	}
}

// Before clients can use longer leases, the guard time must be raised to match.
func ExampleSet() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := members.Set(ctx, q, members.Settings{Guard: 40 * time.Second}); err != nil {
		log.Fatal(err)
	}
}

// A process died while changing the set. Undo rolls its change back.
func ExampleUndo() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	fmt.Println(members.Undo(ctx, q))
	// Output:
	// <nil>
}
