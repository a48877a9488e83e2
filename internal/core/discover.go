package core

// This file owns the user's function that says where the nodes are. Its list is
// the client's list: where to ask which set counts. It binds nothing.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
)

// Discover returns the addresses of the nodes as they are now.
type Discover func(ctx context.Context) ([]string, error)

// The bounds of calls to the user's function. The function may ask a DNS server
// or a registry that fails with the node, so it is called the less often, the
// longer it does not help.
const (
	discoverTimeout = 10 * time.Second // of one call of the function
	discoverLongest = 30 * time.Second // the longest pause between two calls
)

// discovery asks the user's function for the list while no quorum of a set is
// reached. Its methods are safe for concurrent use. One goroutine asks, and
// another one is in the function.
//
// Invariant: nothing waits for the function but its own goroutine. It may hang,
// and it may ignore its context.
type discovery struct {
	q      *Quorum
	wake   chan struct{} // something has changed. It has room for one
	busy   atomic.Bool   // the function has not returned
	failed atomic.Pointer[DiscoveryError]
	ctx    context.Context // ends when the Quorum closes
	cancel context.CancelFunc
}

// DiscoveryError says that the function of the user has failed.
type DiscoveryError struct{ Err error }

func (e *DiscoveryError) Error() string {
	return "where the nodes are is not known: " + passwords().ReplaceAllString(e.Err.Error(), "://***@")
}

// Unwrap returns the function's error.
func (e *DiscoveryError) Unwrap() error { return e.Err }

// passwords are those of URLs, which the parsers of Go quote in their errors.
var passwords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s"'@]*@`) })

var (
	errNoAddresses   = errors.New("the function of WithDiscovery returns no address")
	errDiscoverHangs = errors.New("the function of WithDiscovery has not returned in time")
)

func (d *discovery) init(q *Quorum) {
	d.q, d.wake = q, make(chan struct{}, 1)
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// wanted has the function asked before long, if it seems to help then. It never
// blocks, as its callers are readers and events of members. One wake-up that
// waits stands for all.
func (d *discovery) wanted() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run is a task. It ends when the Quorum closes.
//
// Invariant: the function is asked only while it may help, and with growing
// pauses. All clients of a fleet notice at the same moment that nodes go down.
func (d *discovery) run() {
	first := 5 * d.q.set.NodeTimeout // most nodes that break a connection are back by then
	pause := first
	for {
		if !d.helps() {
			pause = first
			select {
			case <-d.wake:
				continue
			case <-d.ctx.Done():
				return
			}
		}
		select { // the pause lasts, whatever wakes it
		case <-time.After(pause):
		case <-d.ctx.Done():
			return
		}
		if d.helps() {
			pause = min(2*pause, max(first, discoverLongest))
			d.look()
		}
	}
}

// helps reports whether another list may lead to the set: no quorum of it is
// reached.
func (d *discovery) helps() bool { return !d.q.members.reached() }

// look asks the function, and gives the client its list.
//
// Invariant: the function runs once at a time. One that hangs is left alone,
// and its goroutine ends with it.
func (d *discovery) look() {
	if d.busy.Swap(true) {
		return // it has failed, which is known
	}
	all, err := d.q.set.discover(d.ctx, func() { d.busy.Store(false) })
	if err != nil {
		// It is logged when it begins to fail, not each time. Until it works
		// again each error of a node that is down says so, see because.
		if was := d.failed.Swap(&DiscoveryError{err}); was == nil && !d.q.isClosed() {
			d.q.set.Logger.Warn("quorate: no quorum of the nodes is reached, and the discovery of their addresses fails", "error", &DiscoveryError{err})
		}
		return
	}
	d.failed.Store(nil)
	var list []string
	for _, a := range all {
		list = append(list, a.Name())
		d.q.offer(a)
	}
	d.q.members.change(-1, func(m *nodeset.Membership) { m.Relist(list) })
}

// discover calls the user's function in a goroutine of its own, which calls
// over when the function returns. Close does not wait for that goroutine: a
// function that ignores its context would keep a process from ending.
func (s *Settings) discover(ctx context.Context, over func()) ([]Address, error) {
	type answer struct {
		all []Address
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		defer over()
		all, err := s.addresses(ctx)
		done <- answer{all, err}
	}()
	select {
	case a := <-done:
		return a.all, a.err
	case <-ctx.Done():
		return nil, errDiscoverHangs
	}
}

// addresses calls the user's function, and judges its list as that of Connect
// is judged. One address that makes no sense spoils the list.
func (s *Settings) addresses(ctx context.Context) ([]Address, error) {
	urls, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, errNoAddresses
	}
	all, err := ParseNodes(urls)
	if err != nil {
		return nil, err
	}
	return all, s.PrepareAll(all)
}

// FirstAddresses returns what the user's function says at the start. If it
// fails they are urls.
func (s *Settings) FirstAddresses(ctx context.Context, urls []string) ([]Address, error) {
	// A failing function at the start is no error where there is a list.
	all, err := s.discover(ctx, func() {})
	if err == nil {
		return all, nil
	}
	why := &DiscoveryError{err}
	switch {
	case len(urls) > 0:
		s.Logger.Warn("quorate: the discovery of the nodes' addresses fails, so the list of Connect is used", "error", why)
		if all, err = ParseNodes(urls); err == nil {
			err = s.PrepareAll(all)
		}
		return all, err
	case ctx.Err() != nil:
		return nil, &Failure{Err: &cutShort{ErrNoQuorum, ContextError(ctx)}}
	case errors.Is(err, ErrInvalid):
		return nil, &Failure{Err: why}
	}
	return nil, &Failure{Err: fmt.Errorf("%w: %w", ErrNoQuorum, why)}
}

// because adds to an error of a node that is down why no other address of it is
// known.
func (n *node) because(err error) error {
	err = namesAge(err)
	if why := n.q.discovery.failed.Load(); why != nil && err != nil && n.err() != nil {
		return &undiscovered{err, err.Error() + "; " + why.Error()}
	}
	return err
}

// undiscovered is a node's error, and that of the function. What follows from
// it goes by the node's.
type undiscovered struct {
	error
	text string
}

func (e *undiscovered) Error() string { return e.text }

// Unwrap returns the node's error alone: the other one may be of any kind.
func (e *undiscovered) Unwrap() error { return e.error }
