// Package options uses each option wherever an option can be given.
package options

import (
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/flight"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
	"github.com/quorate/quorate/shards"
)

func _(q *quorate.Quorum, f func()) {
	// Every constructor takes the shared options.
	for _, o := range []quorate.SharedOption{
		quorate.WithTTL(time.Second), quorate.WithNodeTimeout(time.Second), quorate.WithMaxHold(time.Hour), quorate.WithoutRenewal(),
	} {
		_, _ = quorate.New(nil, o)
		_, _ = quorate.Connect(nil, nil, o)
		mutex.New(q, "m", o)
		rwmutex.New(q, "rw", o)
		semaphore.NewWeighted(q, "s", 1, o)
		once.New(q, "o", o)
		once.Func(q, "o", f, o)
		leader.New(q, "l", o)
		period.New(q, "p", time.Hour, o)
		flight.New[int](q, "f", o)
		shards.New(q, "s", 3, o)
	}

	// WithLinger is for locks, and may be a default.
	_, _ = quorate.New(nil, quorate.WithLinger(time.Second))
	mutex.New(q, "m", quorate.WithLinger(time.Second))
	rwmutex.New(q, "rw", quorate.WithLinger(time.Second), quorate.WithTTL(time.Second))
	semaphore.NewWeighted(q, "s", 1, quorate.WithLinger(time.Second)) // wrong
	once.New(q, "o", quorate.WithLinger(time.Second))                 // wrong
	leader.New(q, "l", quorate.WithLinger(time.Second))               // wrong

	// These are for the Quorum alone.
	_, _ = quorate.New(nil, quorate.WithGuard(0), quorate.WithSkew(0), quorate.WithRetention(0), quorate.WithPrefix(""), quorate.WithLogger(nil), quorate.WithObserver(nil))
	mutex.New(q, "m", quorate.WithGuard(time.Minute))                      // wrong
	mutex.New(q, "m", quorate.WithSkew(time.Second))                       // wrong
	mutex.New(q, "m", quorate.WithRetention(time.Hour))                    // wrong
	mutex.New(q, "m", quorate.WithPrefix("p"))                             // wrong
	mutex.New(q, "m", quorate.WithLogger(nil))                             // wrong
	mutex.New(q, "m", quorate.WithObserver(nil))                           // wrong
	mutex.New(q, "m", quorate.WithOwner("o"))                              // wrong
	rwmutex.New(q, "rw", quorate.WithGuard(time.Minute))                   // wrong
	semaphore.NewWeighted(q, "s", 1, quorate.WithRetention(time.Hour))     // wrong
	once.New(q, "o", quorate.WithPrefix("p"))                              // wrong
	leader.New(q, "l", quorate.WithLogger(nil))                            // wrong
	once.Value(q, "o", func() int { return 1 }, quorate.WithObserver(nil)) // wrong

	// The options of once are for once alone.
	once.New(q, "o", once.KeepFor(time.Hour), once.WithDurable(), quorate.WithTTL(time.Second))
	once.Value(q, "o", func() int { return 1 }, once.KeepFor(time.Hour))
	_, _ = quorate.New(nil, once.WithDurable())                      // wrong
	_, _ = quorate.Connect(nil, nil, once.KeepFor(time.Hour))        // wrong
	mutex.New(q, "m", once.KeepFor(time.Hour))                       // wrong
	rwmutex.New(q, "rw", once.WithDurable())                         // wrong
	semaphore.NewWeighted(q, "s", 1, once.WithDurable())             // wrong
	leader.New(q, "l", quorate.WithoutRenewal(), once.WithDurable()) // wrong

	// The options of leader are for leader alone.
	leader.New(q, "l", leader.WithID("a"), leader.WithValue("v"), leader.WithOneTerm(), quorate.WithTTL(time.Second))
	_, _ = quorate.New(nil, leader.WithID("a"))          // wrong
	mutex.New(q, "m", leader.WithOneTerm())              // wrong
	rwmutex.New(q, "rw", leader.WithID("a"))             // wrong
	semaphore.NewWeighted(q, "s", 1, leader.WithID("a")) // wrong
	once.New(q, "o", leader.WithValue("v"))              // wrong

	// The option of period is for period alone.
	period.New(q, "p", time.Hour, period.WithRetry(), quorate.WithTTL(time.Second))
	_, _ = quorate.New(nil, period.WithRetry())                  // wrong
	mutex.New(q, "m", period.WithRetry())                        // wrong
	once.New(q, "o", period.WithRetry())                         // wrong
	period.New(q, "p", time.Hour, quorate.WithLinger(time.Hour)) // wrong
	period.New(q, "p", time.Hour, once.WithDurable())            // wrong

	// Options are what this library makes, and nothing else.
	mutex.New(q, "m", f)                      // wrong
	once.New(q, "o", struct{}{})              // wrong
	leader.New(q, "l", time.Second)           // wrong
	_, _ = quorate.New(nil, "redis://a:6379") // wrong
}
