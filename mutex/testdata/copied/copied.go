// Package copied copies a Mutex in the ways that go vet must catch.
package copied

import "github.com/quorate/quorate/mutex"

func byValue(m mutex.Mutex) { m.Lock() }

func byAssignment(a *mutex.Mutex) {
	b := *a
	b.Lock()
}

func byRange(all []mutex.Mutex) {
	for _, m := range all {
		m.Lock()
	}
}

var _ = []any{byValue, byAssignment, byRange}
