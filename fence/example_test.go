package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/mutex"
)

// Check the token and write in the same transaction.
func ExampleDialect_Check() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, strings.Split(os.Getenv("QUORATE_NODES"), ",")) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}

	m := mutex.New(q, "orders")
	err = m.Do(ctx, func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.PostgreSQL.Check(ctx, tx, "orders", m.Lease().Token()); err != nil {
			return err // fence.ErrStale: a later holder has already written
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", 4711); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		log.Print(err)
	}
}

// Create the table along with your other tables.
func ExampleDialect_Schema() {
	fmt.Println(fence.PostgreSQL.Schema())
	// Output: CREATE TABLE IF NOT EXISTS quorate_fences (name TEXT PRIMARY KEY, token BIGINT NOT NULL)
}

// A service with several processes keeps its fences in its database.
func ExampleDialect_Store() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { /* writes */ })
	http.Handle("POST /orders", fence.Handler(fence.PostgreSQL.Store(db), "orders", orders))
}

// The server performs the check and the write in one step.
func ExampleScript_Run() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	setTotal := fence.NewScript("return redis.call('SET', KEYS[1], ARGV[1])")

	var token uint64 = 1838381800842592257 // m.Lease().Token()
	err := setTotal.Run(ctx, client, "{orders}:fence", token, []string{"{orders}:total"}, 99).Err()
	if errors.Is(err, fence.ErrStale) {
		log.Print("the lock is lost: ", err)
	}
}

// If your work reads before it writes, check the fence first.
func ExampleCheckRedis() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	var token uint64 = 1838381800842592257 // m.Lease().Token()
	if err := fence.CheckRedis(ctx, client, "{orders}:fence", token); err != nil {
		log.Fatal(err)
	}
	// Read, decide, and write with a fence.Script. No earlier holder can get a
	// write in between.
}

// A service rejects a client that has lost its lock without noticing.
func ExampleHandler() {
	stock := 0
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stock++ })
	server := httptest.NewServer(fence.Handler(new(fence.Memory), "stock", handler))
	defer server.Close()

	for _, token := range []uint64{1838381800842592256, 1838381800842592257, 1838381800842592256} {
		client := &http.Client{Transport: fence.Transport(nil, token)}
		resp, err := client.Post(server.URL, "", nil)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println("stock:", stock)
	// Output:
	// 200 OK
	// 200 OK
	// 412 Precondition Failed
	// stock: 2
}

// Each hold has its own transport, which sends the hold's token.
func ExampleTransport() {
	var token uint64 = 1838381800842592257 // m.Lease().Token()
	client := &http.Client{Transport: fence.Transport(http.DefaultTransport, token)}
	resp, err := client.Post("http://stock.example/orders", "application/json",
		strings.NewReader(`{"id": 4711}`))
	if err != nil {
		log.Print(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusPreconditionFailed {
		log.Print("the lock is lost: a later holder has been there")
	}
}

// A handler that writes to a database can check the token in the same
// transaction as the write. This works with any number of processes, and you
// don't need Handler.
func ExampleToken() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	pay := func(r *http.Request) error {
		token, err := fence.Token(r)
		if err != nil {
			return err
		}
		tx, err := db.BeginTx(r.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.PostgreSQL.Check(r.Context(), tx, "orders", token); err != nil {
			return err
		}
		if _, err := tx.ExecContext(r.Context(), "UPDATE orders SET paid = true WHERE id = $1",
			r.PathValue("id")); err != nil {
			return err
		}
		return tx.Commit()
	}
	http.HandleFunc("POST /orders/{id}/pay", func(w http.ResponseWriter, r *http.Request) {
		switch err := pay(r); {
		case errors.Is(err, fence.ErrStale):
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, "not now", http.StatusInternalServerError)
		}
	})
}
