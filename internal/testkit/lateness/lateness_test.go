package lateness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	var l Lateness
	assert.Zero(t, l.Allow(12))
	l.most.Store(int64(20 * time.Millisecond))
	assert.Zero(t, l.Allow(12), "as on an idle machine")
	l.most.Store(int64(30 * time.Millisecond))
	assert.Equal(t, 360*time.Millisecond, l.Allow(12))
	l.Reset()
	assert.Zero(t, l.Allow(12))
}

func TestPauses(t *testing.T) {
	t.Parallel()
	var l Lateness
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	l.note(at(300), at(500))
	l.note(at(100), at(200))
	l.note(at(150), at(320)) // of a server, in the same pause
	l.note(at(600), at(620)) // no pause yet
	assert.Equal(t, 400*time.Millisecond, l.Within(at(0), at(1000)))
	assert.Equal(t, 30*time.Millisecond, l.Within(at(170), at(200)))
	assert.Zero(t, l.Within(at(510), at(1000)))
	assert.Zero(t, l.Within(at(0), at(100)))
}

func TestWatch(t *testing.T) {
	t.Parallel()
	var l Lateness
	asked, answer := make(chan struct{}), make(chan error)
	l.Watch(t, func(ctx context.Context) error {
		select {
		case asked <- struct{}{}:
			return <-answer
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	for _, err := range []error{errors.New("the server does not run"), nil} {
		<-asked
		before := time.Now()
		time.Sleep(2 * shortest)
		after := time.Now()
		answer <- err
		<-asked // what was answered is noted
		answer <- errors.New("not this time")
		if still := l.Within(before, after); err != nil {
			assert.Zero(t, still)
		} else {
			assert.Equal(t, after.Sub(before), still)
		}
	}
}
