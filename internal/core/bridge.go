package core

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// The root package sets these: primitives get from a *quorate.Quorum to the
// core, and from a Failure to a *quorate.Error, without the core knowing the
// exported types or the exported types showing the core.
var (
	// CoreOf returns the core of a *quorate.Quorum.
	CoreOf func(quorum any) *Quorum
	// WrapError makes the exported error of a failed operation.
	WrapError = func(_, _ string, err error) error { return err }
	// Option makes a quorate.Option that users cannot make, for tests.
	Option func(Setting) any
	// InProcess returns the way to a node that is in this process, for
	// tests; nil for any other node. It is set before the first Quorum is
	// made.
	InProcess = func(redis.UniversalClient, transport.Config) transport.Transport { return nil }
)

// NoCopy has go vet report copies of a primitive that has it as a field. A copy
// would not know of the holds of the original.
type NoCopy struct{}

// Lock and Unlock are what go vet looks for.
func (*NoCopy) Lock() {}

func (*NoCopy) Unlock() {}
