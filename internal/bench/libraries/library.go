package libraries

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
)

// TTL is every library's lease: what both quorate and redsync choose by
// default.
const TTL = 8 * time.Second

// Library is one of those compared.
type Library struct {
	Name     string
	Open     func(context.Context, servers.Nodes) (Client, error)
	Commands []string // that it sends; what its scripts call counts for them
	OneNode  bool     // it knows no quorum: it takes part where there is one node
	Shares   bool     // the goroutines of a process can share one of its mutexes
	Permits  bool     // it has a semaphore
}

// Job is what a scenario's clients do with the lock. Those that are not a
// mutex's have a primitive in sharing.go; the others do them with what they
// have.
type Job int

const (
	Working Job = iota // each alone
	Reading            // together, but for one time in WriteEvery
	Permits            // AllPermits of them at a time
)

// Client is a library's connection to the nodes.
type Client interface {
	Mutex(name string) Locker
	Close()
}

// Locker is one participant. Unlock waits until a majority has confirmed it,
// where the library can.
type Locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// sharer is a locker that several may hold at once.
type sharer interface {
	share() (weight, room int64)
}

// errGaveUp is the error of a library that tries a number of times only.
var errGaveUp = errors.New("gave up")

// Insist locks m. One that gives up tries again, and all of it is one wait.
func Insist(ctx context.Context, m Locker) error {
	for {
		if err := m.Lock(ctx); !errors.Is(err, errGaveUp) || ctx.Err() != nil {
			return err
		}
	}
}

// What the libraries send.
var (
	ByScript = []string{"evalsha"}
	ByBoth   = []string{"set", "evalsha"}
)
