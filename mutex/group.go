package mutex

import (
	"context"
	"errors"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// Lease returns the hold on one name, or nil if g is not locked or has no such
// name. Each name has its own token and context, and can be lost by itself.
// Call Lease again after each lock, because every hold has new leases. For a
// Group from [Both], it returns the hold on old.
func (g *Group) Lease(name string) quorate.Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.held {
		if h.spec.Name == name {
			return h.lease
		}
	}
	return nil
}

// Leases returns the holds of all names in byte order, or nil if g is not
// locked. For a Group of [Both] the first is the hold on old and the second is
// the hold on new. Their tokens are not comparable: each set counts for itself.
func (g *Group) Leases() []quorate.Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []quorate.Lease
	for _, h := range g.held {
		all = append(all, h.lease)
	}
	return all
}

// UnlockContext unlocks all names and waits until a majority of the nodes has
// confirmed each release. It returns [quorate.ErrNotHeld] if g is not locked.
// Otherwise its errors are those of [Mutex.UnlockContext]: how the first of the
// lost names was lost, joined with the error of the first name whose release
// was not confirmed. All names are released even if it fails.
func (g *Group) UnlockContext(ctx context.Context) error {
	held, lost, ok := g.unlock("unlock")
	if !ok {
		return g.notHeld("unlock")
	}
	err := forEach("unlock", held, func(h *hold) error {
		if h.lease.Lost() != nil {
			return nil
		}
		return h.lease.Hold().Released(ctx)
	})
	switch {
	case lost == nil:
		return err
	case err == nil:
		return lost
	}
	return errors.Join(lost, err)
}

// Extend renews the leases of all names now and waits for a majority of the
// nodes to confirm each one, as [Mutex.Extend] does. It returns the error of
// the first name that failed. The other names are still renewed.
func (g *Group) Extend(ctx context.Context) error {
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held == nil {
		return g.notHeld("extend")
	}
	return forEach("extend", held, func(h *hold) error { return h.lease.Hold().Renew(ctx) })
}

// notHeld returns the error for a Group that is not locked. It names the first
// name, if there is one.
func (g *Group) notHeld(op string) error {
	name := ""
	if len(g.parts) > 0 {
		name = g.parts[0].spec.Name
	}
	return core.WrapError(op, name, &fault.Failure{Err: fault.ErrNotHeld})
}

// forEach calls ask for all names concurrently and returns the error of the
// first one that failed.
func forEach(op string, held []*hold, ask func(h *hold) error) error {
	errs := make([]error, len(held))
	var all sync.WaitGroup
	for i, h := range held {
		all.Go(func() { errs[i] = ask(h) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return core.WrapError(op, held[i].spec.Name, err)
		}
	}
	return nil
}
