package client

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/samber/lo"
)

// primitive describes a kind of work. To add a kind, write a file with its work
// and add an entry here. The checkers need only the capacity, except for once.
type primitive struct {
	names    int   // how many names are in use at a time
	capacity int64 // of each name: the weights of simultaneous valid holds never exceed it
	open     func(e *Env, name string) work
}

var primitives = map[string]primitive{
	"mutex":      {names: 4, capacity: 1, open: openMutex},
	"rwmutex":    {names: 2, capacity: exclusive, open: openRWMutex},
	"semaphore":  {names: 3, capacity: permits, open: openSemaphore},
	"leader":     {names: 2, capacity: 1, open: openLeader},
	"once":       {names: 1, capacity: 1, open: openOnce},    // capacity of each round's runs
	"redsync":    {names: 4, capacity: 1, open: openRedsync}, // for the control
	record.Rival: {capacity: 1, open: openRival},             // locks the names of other kinds
}

// Names returns the names of a kind, which are the same in all clients.
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

// Capacity returns the capacity of each name of a kind.
func Capacity(kind string) int64 { return primitives[kind].capacity }

// Kinds returns the kinds of work that can be selected, in order.
func Kinds() []string {
	kinds := lo.Without(lo.Keys(primitives), record.Rival)
	slices.Sort(kinds)
	return kinds
}
