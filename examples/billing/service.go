package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/examples/billing/ledger"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/period"
)

// database is what the service calls of a ledger.Ledger. A test has one of its
// own.
type database interface {
	Migrate(ctx context.Context) error
	Open(ctx context.Context) ([]string, error)
	Invoice(ctx context.Context, order string, token uint64) error
	Report(ctx context.Context, day time.Time, token uint64) error
}

// service is one replica. All replicas have the same settings.
type service struct {
	q      *quorate.Quorum
	ledger database
	log    *slog.Logger
	poll   time.Duration // between two looks for open orders
	report time.Duration // how often a report is made
}

// run runs the replica until ctx ends. One replica makes the tables, and the
// others wait for that. One numbers invoices, and one makes each report.
func (s *service) run(ctx context.Context) error {
	if err := once.New(s.q, "billing: schema 1").DoContext(ctx, s.ledger.Migrate); err != nil {
		return err
	}
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		s.reports(ctx)
	}()
	defer func() { <-reported }()
	return leader.New(s.q, "billing: leader").Run(ctx, leader.Callbacks{OnStartedLeading: s.lead})
}

// lead numbers invoices until the term ends. Each write has the token of the
// term: a replica that was paused for longer than its lease, and goes on as if
// it led, is refused.
func (s *service) lead(ctx context.Context, term quorate.Lease) {
	for {
		switch err := s.bill(ctx, term.Token()); {
		case errors.Is(err, ledger.ErrFenced):
			return // what else this replica would do in this term is refused, too
		case err != nil && ctx.Err() == nil:
			s.log.Error("billing", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.poll):
		}
	}
}

// bill gives each open order an invoice.
func (s *service) bill(ctx context.Context, token uint64) error {
	orders, err := s.ledger.Open(ctx)
	for _, order := range orders {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.ledger.Invoice(ctx, order, token); err != nil {
			return err
		}
	}
	return err
}

// reports has this replica make those reports that no other makes. One that
// fails is tried again, here or elsewhere.
func (s *service) reports(ctx context.Context) {
	p := period.New(s.q, "billing: report", s.report, period.WithRetry())
	for p.Wait(ctx) == nil {
		_, err := p.Do(ctx, func(ctx context.Context) error {
			return s.ledger.Report(ctx, period.Start(ctx), period.Lease(ctx).Token())
		})
		if err != nil && ctx.Err() == nil {
			s.log.Error("report", "error", err)
		}
	}
}
