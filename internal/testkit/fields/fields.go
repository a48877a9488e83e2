// Package fields changes the fields of values, for tests of what a state has.
package fields

import (
	"reflect"
	"unsafe"

	"github.com/quorate/quorate/internal/protocol"
)

// Change gives a field another value, also an unexported one.
func Change(v reflect.Value, now protocol.Time) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch {
	case v.Type() == reflect.TypeFor[protocol.Time]():
		v.SetInt(int64(now) - 5)
	case v.Type() == reflect.TypeFor[[]protocol.Lower]():
		v.Set(reflect.ValueOf([]protocol.Lower{{Weight: 1}}))
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	}
}
