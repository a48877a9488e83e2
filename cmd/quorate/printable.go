package main

import (
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// printable writes text for a terminal. Host names, leaders' values and error
// messages come from other clients and from nodes. One that contains escape
// sequences could change what the terminal shows, or does.
//
// Invariant: no control character but newline and tab passes; it is written as
// Go writes it in a quoted string.
type printable struct{ w io.Writer }

func (p printable) Write(text []byte) (int, error) {
	var safe []byte
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n' || r == '\t' || r != utf8.RuneError && unicode.IsPrint(r):
			safe = append(safe, rest[:size]...)
		case size == 1:
			quoted := strconv.Quote(string(rest[:1]))
			safe = append(safe, quoted[1:len(quoted)-1]...)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			safe = append(safe, quoted[1:len(quoted)-1]...)
		}
		rest = rest[size:]
	}
	if _, err := p.w.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}
