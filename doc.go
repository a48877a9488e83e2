// Package quorate is Go's sync package across processes, on one Redis or on a
// majority of N independent Redis masters.
//
// A [Quorum] is this process's connection to the nodes. Everything else is
// created from it:
//
//	q, err := quorate.Connect(ctx, []string{"redis://localhost:6379"})
//	...
//	m := mutex.New(q, "invoices")
//	err = m.Do(ctx, func(ctx context.Context) error { return number(ctx) })
//
// # Packages
//
//   - [mutex]: sync.Mutex, plus locking several names at once
//   - [rwmutex]: sync.RWMutex
//   - [semaphore]: at most N at once across the whole fleet
//   - [once]: sync.Once, with a result that all processes share
//   - [leader]: leader election
//   - [period]: run a job at most once per period
//   - [flight]: load a value once and share it with all processes
//   - [shards]: divide work among replicas
//   - [quoratetest]: nodes inside a test, with fault injection and fake time
//   - [inspect]: find out who holds a name and who is waiting for it
//   - [members]: change the set of nodes while locks are held
//   - [health]: handlers for health probes
//
// Metrics and traces for OpenTelemetry are in the module otel. Adapters for
// other libraries are in the modules under compat.
//
// # What is guaranteed
//
// No two processes hold a name at the same time, as measured by each one's own
// clock, and every holder has a higher token than the holders before it. This
// requires that fewer than half of the nodes fail at a time, that all clocks
// run at the same speed to within 1%, and that the clocks of a majority of the
// nodes agree to within [WithSkew]. For the full list, see
// docs/reference/guarantees.md.
//
// # What is not
//
// No lock can stop a process that has been paused. When the process wakes up,
// the context of its lease is already done, but it may write once more before
// it checks. If such a stale write would do harm, pass [Lease.Token] to the
// resource and have the resource reject any token lower than the highest one it
// has seen.
//
// # Errors
//
// An operation that fails returns an [*Error] of one of the kinds [ErrHeld],
// [ErrNoQuorum], [ErrLost], [ErrNotHeld], [ErrClosed] and [ErrInvalid]. [New]
// and [Connect] reject invalid nodes and options with ErrInvalid. The
// constructors of the primitives panic if an option is invalid, because that is
// a programming error.
//
// Everything in this package is safe for concurrent use.
//
// [mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex
// [rwmutex]: https://pkg.go.dev/github.com/quorate/quorate/rwmutex
// [semaphore]: https://pkg.go.dev/github.com/quorate/quorate/semaphore
// [once]: https://pkg.go.dev/github.com/quorate/quorate/once
// [leader]: https://pkg.go.dev/github.com/quorate/quorate/leader
// [period]: https://pkg.go.dev/github.com/quorate/quorate/period
// [flight]: https://pkg.go.dev/github.com/quorate/quorate/flight
// [shards]: https://pkg.go.dev/github.com/quorate/quorate/shards
// [quoratetest]: https://pkg.go.dev/github.com/quorate/quorate/quoratetest
// [inspect]: https://pkg.go.dev/github.com/quorate/quorate/inspect
// [members]: https://pkg.go.dev/github.com/quorate/quorate/members
// [health]: https://pkg.go.dev/github.com/quorate/quorate/health
package quorate
