package cli

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

// This file owns what may stand in a cell of a table, or in a part of a line:
// labels, hosts, fields of INFO and error messages come from other clients and
// from nodes.

// longestCell is how many bytes of such a text are shown.
const longestCell = 1024

// Cell returns text as one part of one line: what could end the line or the
// cell, or change what the terminal shows, is written as Go writes it in a
// quoted string, and what is longer than 1 kB is cut.
func Cell(text string) string {
	safe := string(board.Escape([]byte(text[:min(len(text), longestCell)]), ""))
	if len(text) <= longestCell && len(safe) <= longestCell {
		return safe
	}
	cut := min(len(safe), longestCell)
	for cut > 0 && cut < len(safe) && !utf8.RuneStart(safe[cut]) {
		cut--
	}
	return safe[:cut] + fmt.Sprintf("… (%d bytes)", len(text))
}

// longestLine is how many bytes of a line are shown in which several nodes say
// why they refuse. Each of their texts is a Cell already.
const longestLine = 8 * longestCell

// Lines returns text with each of its lines escaped as a Cell, and cut when it
// is longer than 8 kB.
func Lines(text string) string {
	safe := string(board.Escape([]byte(text[:min(len(text), longestLine)]), "\n"))
	if len(text) <= longestLine {
		return safe
	}
	return safe + fmt.Sprintf("… (%d bytes)", len(text))
}

// shown is an error whose text is a Cell. What it matches is unchanged.
type shown struct {
	error
	text string
}

func (e *shown) Error() string { return e.text }

func (e *shown) Unwrap() error { return e.error }

// Clean returns a copy of a report in which each text and each error is a Cell.
func Clean[T any](report T) T {
	v := reflect.New(reflect.TypeFor[T]()).Elem()
	v.Set(reflect.ValueOf(report))
	clean(v)
	return v.Interface().(T)
}

// clean cleans a value in its place. What it points to is copied first.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(Cell(v.String()))
	case reflect.Interface:
		if err, is := v.Interface().(error); is {
			v.Set(reflect.ValueOf(&shown{err, Cell(err.Error())}))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			clean(c.Elem())
			v.Set(c)
		}
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			clean(c.Index(i))
		}
		v.Set(c)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				clean(value)
			}
		}
	}
}
