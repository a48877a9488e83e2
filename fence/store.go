package fence

import (
	"context"
	"fmt"
	"sync"
)

// A Store remembers the highest token for each name, and admits work
// accordingly. Its methods may be called concurrently. [Memory] is a Store, and
// [Dialect.Store] returns one.
type Store interface {
	// Enter admits work with the token until leave is called. It returns
	// [ErrStale] if a higher token has already been admitted for the name. Several
	// pieces of work with the same token may be admitted at the same time. Enter
	// waits until all work with lower tokens has left. It returns an error if ctx
	// is done first.
	Enter(ctx context.Context, name string, token uint64) (leave func(), err error)
}

// Memory is a [Store] that lives in this process. It is meant for a service
// that consists of a single process and loses the protected data when it exits,
// because the fences are lost at the same time. It keeps an entry for each name
// it has seen. The zero Memory is empty and ready to use. A Memory must not be
// copied after first use.
type Memory struct {
	mu     sync.Mutex
	fences map[string]*entry
}

// entry is the fence of one name.
// Invariant: all work that is in has the token inside, and inside <= highest.
type entry struct {
	highest uint64
	inside  uint64
	n       int           // how many with that token are in
	left    chan struct{} // closed when the last of them leaves; nil if none is in
}

// Enter implements [Store].
func (m *Memory) Enter(ctx context.Context, name string, token uint64) (leave func(), err error) {
	if err := validate(name, token); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fences == nil {
		m.fences = map[string]*entry{}
	}
	e := m.fences[name]
	if e == nil {
		e = &entry{}
		m.fences[name] = e
	}
	for {
		// Raise the fence before waiting. Otherwise earlier holders could keep coming
		// in, and this one would wait forever.
		if err := compare(name, token, e.highest); err != nil {
			return nil, err
		}
		e.highest = token
		if e.n == 0 || e.inside == token {
			break
		}
		if err := m.wait(ctx, e.left); err != nil {
			return nil, fmt.Errorf("fence %q: work of an earlier holder, token %d, is still running: %w",
				name, e.inside, err)
		}
	}
	if e.n == 0 {
		e.left = make(chan struct{})
	}
	e.inside = token
	e.n++
	return sync.OnceFunc(func() { m.leave(e) }), nil
}

// wait waits without the lock until left is closed or ctx ends.
func (m *Memory) wait(ctx context.Context, left <-chan struct{}) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Memory) leave(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.n--; e.n == 0 {
		close(e.left)
	}
}
