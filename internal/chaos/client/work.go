package client

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// primitive is all that the suite knows of a kind of work. A new one is a file
// with its work and an entry here; the checkers need nothing but the capacity,
// except for once.
type primitive struct {
	names    int   // how many are in use at a time
	capacity int64 // of each: holds that are valid together never weigh more
	open     func(e *Env, name string) work
}

var primitives = map[string]primitive{
	"mutex":      {names: 4, capacity: 1, open: openMutex},
	"rwmutex":    {names: 2, capacity: exclusive, open: openRWMutex},
	"semaphore":  {names: 3, capacity: permits, open: openSemaphore},
	"leader":     {names: 2, capacity: 1, open: openLeader},
	"once":       {names: 1, capacity: 1, open: openOnce},    // of each round's runs
	"redsync":    {names: 4, capacity: 1, open: openRedsync}, // for the control
	record.Rival: {capacity: 1, open: openRival},             // of the names of others
}

// Names of a primitive's kind, the same in all clients.
func Names(kind string) []string {
	if kind == record.Rival {
		return append(Names("mutex"), Names("leader")...)
	}
	var all []string
	for i := range primitives[kind].names {
		all = append(all, fmt.Sprintf("%s-%d", kind, i))
	}
	return all
}

// Capacity of each name of a kind.
func Capacity(kind string) int64 { return primitives[kind].capacity }

// Kinds are the kinds of work that can be asked for, in order.
func Kinds() []string {
	kinds := lo.Without(lo.Keys(primitives), record.Rival)
	slices.Sort(kinds)
	return kinds
}
