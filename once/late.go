package once

import (
	"context"
	"time"
)

// lasting returns a context that ends with ctx, but not before d is over.
func lasting(ctx context.Context, d time.Duration) (context.Context, func()) {
	l := &late{Context: ctx, done: make(chan struct{})}
	least, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() {
		<-least.Done()
		close(l.done)
	})
	return l, func() { stop(); cancel() }
}

// late is a context that ends for the same reason as another, but later.
type late struct {
	context.Context
	done chan struct{}
}

func (*late) Deadline() (time.Time, bool) { return time.Time{}, false }

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return l.Context.Err()
	default:
		return nil
	}
}
