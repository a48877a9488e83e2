package cli

import (
	"io"
	"regexp"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

// Printable writes text for a terminal. Host names, leaders' values and error
// messages come from other clients and from nodes. One that contains escape
// sequences could change what the terminal shows, or does.
//
// Invariant: no control character but newline and tab passes; it is written as
// Go writes it in a quoted string.
type Printable struct{ W io.Writer }

// secret finds what a URL says of a user. A URL that was given to the wrong
// flag is quoted by whatever refuses it.
var secret = regexp.MustCompile(`("(?:rediss?|unix)(?:\+cluster)?://)[^"\n]*(@)|((?:rediss?|unix)(?:\+cluster)?://)[^\s"]*(@)|([?&]password=)[^&\s"]*`)

func (p Printable) Write(text []byte) (int, error) {
	safe := board.Escape(secret.ReplaceAll(text, []byte("${1}${3}${5}…${2}${4}")), "\n\t")
	if _, err := p.W.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}
