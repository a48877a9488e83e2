package once_test

import (
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
)

// BenchmarkDo is Do of work that is known to be done, alongside sync.Once.
func BenchmarkDo(b *testing.B) {
	q := e2e.Open(b, redistest.Start(b, 3))
	ours, theirs := once.New(q, "o"), new(sync.Once)
	f := func() {}
	ours.Do(f)
	theirs.Do(f)
	for name, do := range map[string]struct{ alone, contended func(b *testing.B) }{
		"quorate": {
			func(b *testing.B) {
				for b.Loop() {
					ours.Do(f)
				}
			},
			func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						ours.Do(f)
					}
				})
			},
		},
		"sync": {
			func(b *testing.B) {
				for b.Loop() {
					theirs.Do(f)
				}
			},
			func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						theirs.Do(f)
					}
				})
			},
		},
	} {
		b.Run(name, do.alone)
		b.Run(name+"-parallel", do.contended)
	}
}
