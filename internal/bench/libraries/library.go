package libraries

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/bench/servers"
)

// TTL is every library's lease, which is the default of both quorate and
// redsync.
const TTL = 8 * time.Second

// Library is one of the libraries that are compared.
type Library struct {
	Name     string
	Open     func(context.Context, servers.Nodes) (Client, error)
	Commands []string // commands that it sends; calls inside its scripts count as part of these
	OneNode  bool     // it has no quorum, so it takes part only with one node
	Shares   bool     // the goroutines of a process can share one of its mutexes
	Permits  bool     // it has a semaphore
}

// Job is what a scenario's clients do with the lock. For jobs other than a
// mutex's, our library uses a primitive in sharing.go, and the other libraries
// use what they have.
type Job int

const (
	Working Job = iota // each holds the lock alone
	Reading            // together, except for one time in WriteEvery
	Permits            // up to AllPermits at a time
)

// Client is a library's connection to the nodes.
type Client interface {
	Mutex(name string) Locker
	Close()
}

// Locker is one participant. Unlock waits until a majority has confirmed it, if
// the library can.
type Locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// sharer is a Locker that several clients may hold at once.
type sharer interface {
	share() (weight, room int64)
}

// errGaveUp is the error of a library that gives up after a number of tries.
var errGaveUp = errors.New("gave up")

// Insist locks m. If the library gives up, it tries again. All tries count as
// one wait.
func Insist(ctx context.Context, m Locker) error {
	for {
		if err := m.Lock(ctx); !errors.Is(err, errGaveUp) || ctx.Err() != nil {
			return err
		}
	}
}

// The commands that the libraries send.
var (
	ByScript = []string{"evalsha"}
	ByBoth   = []string{"set", "evalsha"}
)
