package mutex

import (
	"context"
	"slices"
)

// This file owns the context of Group.Do.

// allContext ends with any of several leases.
type allContext struct {
	context.Context
	each []context.Context // of each lease, derived from that of the one before; the last one is Context
}

// Err asks each lease: a deadline may have passed that no goroutine has noticed
// yet. Asking ends that lease's context, and so those derived from it.
func (c *allContext) Err() error {
	for _, inner := range c.each {
		_ = inner.Err()
	}
	return c.Context.Err()
}

// within returns a context that ends with ctx and with any of the holds.
func within(ctx context.Context, held []*hold) (inner context.Context, stop func()) {
	c := &allContext{Context: ctx}
	stops := make([]func(), len(held))
	for i, h := range held {
		c.Context, stops[i] = h.lease.Derive(c.Context)
		c.each = append(c.each, c.Context)
	}
	return c, func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}
