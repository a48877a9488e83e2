// Package quorate is Go's sync package across processes, on one Redis or on a
// majority of N independent Redis masters.
//
// A [Quorum] is this process's connection to the nodes. Everything else is made
// from it:
//
//	q, err := quorate.Connect(ctx, []string{"redis://localhost:6379"})
//	...
//	m := mutex.New(q, "invoices")
//	err = m.Do(ctx, func(ctx context.Context) error { return number(ctx) })
//
// # Packages
//
//   - [mutex]: sync.Mutex, and several names as one lock
//   - [rwmutex]: sync.RWMutex
//   - [semaphore]: at most N at once across the whole fleet
//   - [once]: sync.Once, with a result that all processes share
//   - [leader]: one leader at a time
//   - [period]: a job at most once per period
//   - [flight]: load a value once for all processes
//   - [shards]: divide work among replicas
//   - [quoratetest]: nodes inside a test, with faults and fake time
//   - [inspect]: who holds which name, and who is waiting
//   - [members]: change the nodes while locks are held
//   - [health]: handlers for probes
//
// Metrics and traces for OpenTelemetry are in the module otel. Adapters for
// other libraries are in the modules under compat.
//
// # What is guaranteed
//
// No two processes hold a name at the same time, each by its own clock, and a
// later holder has a higher token than every earlier one. This rests on three
// conditions: fewer than half of the nodes fail at a time, all clocks run at
// the same speed within 1%, and the clocks of a majority of the nodes agree
// within [WithSkew]. docs/reference/guarantees.md has the whole list.
//
// # What is not
//
// No lock can stop a process that has been paused. When the process wakes up,
// its lease's context has ended, but the process may write once more before it
// checks. If a late write would do harm, pass [Lease.Token] to the resource,
// and have the resource reject any token lower than one it has already seen.
//
// # Errors
//
// An operation that fails returns an [*Error] of one of the kinds [ErrHeld],
// [ErrNoQuorum], [ErrLost], [ErrNotHeld], [ErrClosed] and [ErrInvalid]. [New]
// and [Connect] reject invalid nodes and options with ErrInvalid. The
// constructor of a primitive panics if an option is invalid, because that is a
// programming error.
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
