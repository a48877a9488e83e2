package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// This file owns the form of --json: the fields of the library's reports, with
// the names in lower case.
//
//	time.Duration   seconds, in a field that ends with _seconds
//	time.Time       RFC 3339; left out if zero
//	error           its text; left out if nil
//	token, term     a string: they are above 2^53, which many programs round
//
// Fields that are added later are no change of the form. What is left out is
// zero, or was not found out.

func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON, for programs")
}

// printJSON prints a report as one document. An error of the writer is kept by
// that: see sink.
func printJSON(w io.Writer, report any) {
	text, err := json.MarshalIndent(plainValue(reflect.ValueOf(report)), "", "  ")
	if err != nil {
		panic(err) // plainValue makes only what JSON has
	}
	_, _ = fmt.Fprintf(w, "%s\n", text)
}

// printLine is printJSON on one line.
func printLine(w io.Writer, report any) error {
	text, err := json.Marshal(plainValue(reflect.ValueOf(report)))
	if err != nil {
		panic(err)
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// plainValue returns what JSON has for a value.
func plainValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		return x
	case error:
		return cli.Cell(cli.InFlags(x.Error()))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plainValue(v.Elem())
	case reflect.Slice:
		all := make([]any, v.Len()) // [] rather than null
		for i := range all {
			all[i] = plainValue(v.Index(i))
		}
		return all
	case reflect.Struct:
		return plainStruct(v)
	}
	return v.Interface()
}

func plainStruct(v reflect.Value) any {
	fields := map[string]any{}
	for field, value := range v.Fields() {
		name := snake(field.Name)
		switch x := value.Interface().(type) {
		case time.Duration:
			fields[name+"_seconds"] = x.Seconds()
			continue
		case []uint64:
			tokens := make([]string, len(x))
			for i, t := range x {
				tokens[i] = strconv.FormatUint(t, 10)
			}
			fields[name] = tokens
			continue
		case uint64:
			if field.Name == "Token" || field.Name == "Term" {
				fields[name] = strconv.FormatUint(x, 10)
				continue
			}
		}
		missing := value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface ||
			value.Type() == reflect.TypeFor[time.Time]()
		if !missing || !value.IsZero() {
			fields[name] = plainValue(value)
		}
	}
	return fields
}

// snake writes a name of Go with underscores: RoundTrip, PID, CaughtUp.
func snake(name string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}
