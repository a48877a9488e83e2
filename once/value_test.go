package once_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/once"
)

type config struct {
	Region string
	Shards []int
	hidden int
}

func TestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := bubbled(nodes(t), 2, e2e.Timing(quiet))
		runs := 0
		make := func() config {
			runs++
			return config{"eu", []int{1, 2}, 3}
		}
		a, b := once.Value(qs[0], "config", make), once.Value(qs[1], "config", make)
		want := config{Region: "eu", Shards: []int{1, 2}}
		assert.Equal(t, want, a(), "as it was encoded, also where it was made")
		assert.Equal(t, want, b())
		assert.Same(t, &a().Shards[0], &a().Shards[0], "decoded once")
		assert.Equal(t, 1, runs)
	})
}

func TestValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := bubbled(nodes(t), 2, e2e.Timing(quiet))
		runs := 0
		f := func() (string, error) {
			runs++
			return "id", nil
		}
		for _, q := range qs {
			get := once.Values(q, "id", f)
			for range 2 {
				id, err := get()
				assert.Equal(t, "id", id)
				assert.NoError(t, err)
			}
		}
		assert.Equal(t, 1, runs)
	})
}

func TestValueContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := bubbled(nodes(t), 2, e2e.Timing(quiet))
		boom := errors.New("boom")
		fails := once.ValueContext(qs[0], "n", func(context.Context) (int, error) { return 7, boom })
		n, err := fails(t.Context())
		assert.Zero(t, n)
		assert.Equal(t, boom, err, "f's own")
		var token uint64
		get := once.ValueContext(qs[1], "n", func(ctx context.Context) (int, error) {
			token = once.Lease(ctx).Token()
			return 8, nil
		})
		for range 2 {
			n, err = get(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 8, n)
		}
		n, err = fails(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 8, n)
		assert.Equal(t, token, status(t, once.New(qs[0], "n")).Token)
		assert.Nil(t, once.Lease(t.Context()))
	})
}

func TestValuesThatCannotBeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		_, err := once.ValueContext(q, "chan", func(context.Context) (chan int, error) {
			t.Error("called in vain")
			return nil, nil
		})(t.Context())
		assert.ErrorIs(t, err, quorate.ErrInvalid)
		assert.NotErrorIs(t, err, once.ErrNotRecorded)
		assert.ErrorContains(t, err, "chan int")

		fails := func(err error, words ...string) {
			t.Helper()
			assert.ErrorIs(t, err, quorate.ErrInvalid)
			assert.ErrorIs(t, err, once.ErrNotRecorded, "f has run")
			for _, w := range words {
				assert.ErrorContains(t, err, w)
			}
		}
		_, err = once.ValueContext(q, "any", func(context.Context) (any, error) {
			return func() {}, nil
		})(t.Context())
		fails(err, "interface {}", "func()")
		_, err = once.ValueContext(q, "NaN", func(context.Context) (float64, error) {
			return math.NaN(), nil
		})(t.Context())
		fails(err, "cannot encode a value of type float64", "NaN")
		_, err = once.ValueContext(q, "reader", func(context.Context) (error, error) {
			return errors.New("x"), nil
		})(t.Context())
		fails(err, "cannot decode the record as a value of type error")
		size := once.MaxValue - len(`""`)
		big := func(context.Context) (string, error) { return strings.Repeat("x", size), nil }
		s, err := once.ValueContext(q, "big", big)(t.Context())
		require.NoError(t, err)
		assert.Len(t, s, size)
		size++
		_, err = once.ValueContext(q, "bigger", big)(t.Context())
		fails(err, "string", "524289 bytes", "524288")
		for _, name := range []string{"chan", "any", "NaN", "reader", "bigger"} {
			assert.Equal(t, once.NotStarted, status(t, once.New(q, name)).State)
		}

		// What others have recorded.
		once.New(q, "done").Do(func() {})
		get := once.ValueContext(q, "done", func(context.Context) (int, error) { return 0, nil })
		for range 2 {
			_, err = get(t.Context())
			assert.ErrorIs(t, err, quorate.ErrInvalid)
			assert.ErrorContains(t, err, "0 values are recorded, not 1")
		}
		once.Value(q, "text", func() string { return "x" })()
		_, err = once.ValueContext(q, "text", func(context.Context) (int, error) { return 0, nil })(t.Context())
		assert.ErrorIs(t, err, quorate.ErrInvalid)
		assert.ErrorContains(t, err, "cannot decode the record as a value of type int")
		assert.Contains(t, panicText(func() { once.Value(q, "text", func() int { return 0 })() }), "type int")
	})
}
