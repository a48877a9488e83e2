// Command billing is a sample service: start as many replicas as you like. One
// makes the tables, one at a time numbers invoices, and each day has one
// report, whichever replicas and nodes come and go. Its tests need no server.
//
//	QUORATE_NODES=a:6379,b:6379,c:6379 DATABASE_URL=postgres://… billing
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/lib/pq"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/examples/billing/ledger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Getenv("QUORATE_NODES"), os.Getenv("DATABASE_URL")); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// serve runs a replica until ctx ends.
func serve(ctx context.Context, nodes, database string) (err error) {
	db, err := sql.Open("postgres", database)
	if err != nil {
		return err
	}
	defer db.Close()
	q, err := quorate.Connect(ctx, []string{nodes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }() // hands the leadership over
	s := service{q: q, ledger: ledger.Ledger{DB: db}, log: slog.Default(),
		poll: time.Second, report: 24 * time.Hour}
	return s.run(ctx)
}
