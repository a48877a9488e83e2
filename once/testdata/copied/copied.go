// Package copied copies a Once in the ways that go vet must catch.
package copied

import "github.com/quorate/quorate/once"

func byValue(o once.Once) { o.Do(func() {}) }

func byAssignment(a *once.Once) {
	b := *a
	b.Do(func() {})
}

var _ = []any{byValue, byAssignment}
