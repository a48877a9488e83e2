package quoratetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// locker is the part of a mutex that the service uses. A *mutex.Mutex
// implements it, and a test of something else can pass any other
// implementation.
type locker interface {
	TryLockContext(ctx context.Context) error
	Unlock()
}

// makeReport is the service. It makes the report unless another process is
// already making it.
func makeReport(ctx context.Context, l locker, report func() error) (made bool, err error) {
	if err := l.TryLockContext(ctx); errors.Is(err, quorate.ErrHeld) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer l.Unlock()
	return true, report()
}

// reportIsMadeOnce is the body of a test of the service, called in a bubble:
//
//	func TestReportIsMadeOnce(t *testing.T) { synctest.Test(t, reportIsMadeOnce) }
func reportIsMadeOnce(t *testing.T) {
	c := quoratetest.New(t, 3)
	here, there := mutex.New(c.Quorum(), "report"), mutex.New(c.Quorum(), "report")
	slow := func() error { time.Sleep(time.Hour); return nil } // of the bubble's time
	go makeReport(t.Context(), here, slow)
	synctest.Wait()

	if made, err := makeReport(t.Context(), there, slow); made || err != nil {
		t.Errorf("both processes make the report: %v, %v", made, err)
	}
	time.Sleep(2 * time.Hour)
	if holders := c.Holders("report"); len(holders) > 0 {
		t.Errorf("an hour later the lock is still held: %v", holders)
	}
}

// A test of a service: two processes want to make one report. It takes hours of
// the bubble's time, but only about a millisecond of real time.
func Example() {
	_ = func(t *testing.T) { synctest.Test(t, reportIsMadeOnce) } // func TestReportIsMadeOnce
}
