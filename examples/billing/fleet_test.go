package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/examples/billing/ledger"
	"github.com/quorate/quorate/quoratetest"
)

// The settings of the Quorums here: the defaults.
const (
	lease = 8 * time.Second
	guard = 20 * time.Second
)

// memory is a database in the process, with the fences of the real one.
type memory struct {
	mu       sync.Mutex
	migrated int
	orders   []string
	invoices []string
	tokens   []uint64 // of the invoices
	reports  map[time.Time]int
	fences   map[string]uint64
	refused  int

	migrate func() error // before Migrate, if set
	invoice func()       // before Invoice, if set; neither is set later than a replica starts
}

func newMemory() *memory { return &memory{reports: map[time.Time]int{}, fences: map[string]uint64{}} }

func (m *memory) Migrate(context.Context) error {
	if m.migrate != nil {
		if err := m.migrate(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.migrated++
	return nil
}

// order places n orders.
func (m *memory) order(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.orders = append(m.orders, fmt.Sprint("order ", len(m.orders)+1))
	}
}

func (m *memory) Open(context.Context) (open []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.orders {
		if !slices.Contains(m.invoices, o) {
			open = append(open, o)
		}
	}
	return open, nil
}

// pass is the fence.
func (m *memory) pass(fence string, token uint64) error {
	if token < m.fences[fence] {
		m.refused++
		return ledger.ErrFenced
	}
	m.fences[fence] = token
	return nil
}

func (m *memory) Invoice(_ context.Context, order string, token uint64) error {
	if m.invoice != nil {
		m.invoice()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.pass("invoices", token); err != nil {
		return err
	}
	m.invoices, m.tokens = append(m.invoices, order), append(m.tokens, token)
	return nil
}

func (m *memory) Report(_ context.Context, day time.Time, token uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reports[day]++
	return m.pass("reports", token)
}

// count returns how many invoices there are, and how many writes were refused.
func (m *memory) count() (invoices, refused int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.invoices), m.refused
}

// fleet is the service under test.
type fleet struct {
	t      *testing.T
	nodes  *quoratetest.Cluster
	ledger *memory
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t, quoratetest.New(t, 3), newMemory()}
}

// replica is a process of the service.
type replica struct {
	q    *quorate.Quorum
	stop func() // and wait until it has ended
	*process
}

// process is the ledger as one replica sees it.
type process struct {
	*memory
	dead atomic.Bool // it does nothing any more
}

func (p *process) Open(ctx context.Context) ([]string, error) {
	if p.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.memory.Open(ctx)
}

// dies ends a replica as kill -9 does: it asks neither the nodes nor the ledger
// any more.
func (f *fleet) dies(r *replica) {
	r.dead.Store(true)
	f.nodes.Partition(r.q, 0, 1, 2)
}

func (f *fleet) start() *replica {
	ctx, cancel := context.WithCancel(f.t.Context())
	q := f.nodes.Quorum()
	p := &process{memory: f.ledger}
	s := service{q: q, ledger: p, log: slog.New(slog.DiscardHandler), poll: time.Second, report: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	r := &replica{q, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			f.t.Error(err)
		}
		if err := q.Close(); err != nil {
			f.t.Log(err) // without nodes nothing can be given back
		}
	}), p}
	f.t.Cleanup(r.stop)
	synctest.Wait()
	return r
}

// billed waits until all orders have an invoice, and returns how long that
// took. Each order has one, and no later one has a lower token.
func (f *fleet) billed() time.Duration {
	f.t.Helper()
	began := time.Now()
	for {
		f.ledger.mu.Lock()
		orders, invoices, tokens := len(f.ledger.orders),
			slices.Clone(f.ledger.invoices), slices.Clone(f.ledger.tokens)
		f.ledger.mu.Unlock()
		if len(invoices) >= orders {
			slices.Sort(invoices)
			assert.Len(f.t, slices.Compact(invoices), orders, "each order has one invoice")
			assert.True(f.t, slices.IsSorted(tokens))
			return time.Since(began)
		}
		require.Less(f.t, time.Since(began), 10*time.Minute,
			"%d of %d orders have an invoice", len(invoices), orders)
		time.Sleep(100 * time.Millisecond)
	}
}

// terms is under how many terms invoices were written.
func (f *fleet) terms() int {
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()
	return len(slices.Compact(slices.Clone(f.ledger.tokens)))
}
