package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/fault"
)

// MaxValue is the maximum size, in bytes, of a shared value after encoding. For
// [Values], it applies to both values together.
const MaxValue = 512 << 10

// Value is [sync.OnceValue] across processes: it returns a function that
// returns what f returned in the process that ran it. The function waits and
// panics like [Once.Do]. It also panics if the value cannot be encoded, is
// larger than [MaxValue], or cannot be decoded.
//
// The value is shared as JSON. Every caller gets the decoded value, even the
// one that ran f, so unexported fields are lost for everyone.
func Value[T any](q *quorate.Quorum, name string, f func() T, opts ...quorate.OnceOption) func() T {
	s := share(New(q, name, opts...), func(v *T) []any { return []any{v} })
	return func() T { return s.must("value", f) }
}

// Values is like [Value], but for functions with two results, like
// [sync.OnceValues]. If the second result is an error, it can be shared only if
// it is nil, because errors have no encoding. For work that may fail, use
// [ValueContext].
func Values[T1, T2 any](q *quorate.Quorum, name string, f func() (T1, T2),
	opts ...quorate.OnceOption) func() (T1, T2) {
	type both struct {
		v1 T1
		v2 T2
	}
	s := share(New(q, name, opts...), func(b *both) []any { return []any{&b.v1, &b.v2} })
	return func() (T1, T2) {
		b := s.must("values", func() (b both) {
			b.v1, b.v2 = f()
			return b
		})
		return b.v1, b.v2
	}
}

// ValueContext is like [Value], but the returned function takes a context and
// returns an error instead of panicking: f's own error, or any error of
// [Once.DoContext]. If the value cannot be encoded, is larger than [MaxValue],
// or cannot be decoded, the error matches [quorate.ErrInvalid] and names the
// type. It also matches [ErrNotRecorded] if f has already run.
func ValueContext[T any](q *quorate.Quorum, name string, f func(ctx context.Context) (T, error),
	opts ...quorate.OnceOption) func(ctx context.Context) (T, error) {
	s := share(New(q, name, opts...), func(v *T) []any { return []any{v} })
	return func(ctx context.Context) (T, error) {
		v, err := s.get(ctx, false, f)
		return v, s.o.wrapError("value", err)
	}
}

// shared is a value that is computed once.
type shared[R any] struct {
	o     *Once
	parts func(*R) []any // pointers to what is encoded, one by one
	last  atomic.Pointer[decoded[R]]
}

// decoded is the value of a recorded run.
type decoded[R any] struct {
	of *completion
	v  R
}

func share[R any](o *Once, parts func(*R) []any) *shared[R] {
	s := &shared[R]{o: o, parts: parts}
	if o.err == nil {
		o.err = s.unfit()
	}
	return s
}

// unfit finds out what encoding/json could never encode, before f runs in vain.
func (s *shared[R]) unfit() error {
	for _, p := range s.parts(new(R)) {
		_, err := json.Marshal(p)
		if _, ok := errors.AsType[*json.UnsupportedTypeError](err); ok {
			return fmt.Errorf("%w: cannot encode a value of type %v: %w", fault.ErrInvalid, typeOf(p), err)
		}
	}
	return nil
}

func (s *shared[R]) must(op string, f func() R) (v R) {
	s.o.must(op, func() (err error) {
		v, err = s.get(context.Background(), true, func(context.Context) (R, error) { return f(), nil })
		return err
	})
	return v
}

func (s *shared[R]) get(ctx context.Context, insist bool, f func(ctx context.Context) (R, error)) (R, error) {
	c, err := s.o.do(ctx, work{insist: insist, f: func(ctx context.Context) ([][]byte, error) {
		v, err := f(ctx)
		if err != nil {
			return nil, &failed{err: err}
		}
		return s.encode(&v)
	}})
	if err != nil {
		return *new(R), err
	}
	if last := s.last.Load(); last != nil && last.of == c {
		return last.v, nil
	}
	v, err := s.decode(c.Encoded)
	if err != nil {
		return v, err
	}
	s.last.Store(&decoded[R]{c, v})
	return v, nil
}

// encode encodes what f has returned, and sees that others can decode it. Its
// errors are ours, not f's.
func (s *shared[R]) encode(v *R) ([][]byte, error) {
	var values [][]byte
	size := 0
	for _, p := range s.parts(v) {
		b, err := json.Marshal(reflect.ValueOf(p).Elem().Interface())
		if err != nil {
			return nil, unrecordable("cannot encode a value of type %v: %w", typeOf(p), err)
		}
		if size += len(b); size > MaxValue {
			return nil, unrecordable("a value of type %v takes %d bytes, at most %d are recorded; store it "+
				"elsewhere and share where it is", typeOf(p), size, MaxValue)
		}
		values = append(values, b)
	}
	if _, err := s.decode(values); err != nil {
		return nil, notRecorded(err)
	}
	return values, nil
}

// unrecordable is the error of a value that f has returned and that cannot be
// recorded.
func unrecordable(format string, args ...any) error {
	return notRecorded(fmt.Errorf("%w: "+format, append([]any{fault.ErrInvalid}, args...)...))
}

func (s *shared[R]) decode(values [][]byte) (R, error) {
	var v R
	parts := s.parts(&v)
	if len(values) != len(parts) {
		return *new(R), fmt.Errorf("%w: %d values are recorded, not %d: another function uses "+
			"this name", fault.ErrInvalid, len(values), len(parts))
	}
	for i, p := range parts {
		if err := json.Unmarshal(values[i], p); err != nil {
			return *new(R), fmt.Errorf("%w: cannot decode the record as a value of type %v: %w",
				fault.ErrInvalid, typeOf(p), err)
		}
	}
	return v, nil
}

// typeOf is the type that p points to, including interface types.
func typeOf(p any) reflect.Type { return reflect.TypeOf(p).Elem() }
