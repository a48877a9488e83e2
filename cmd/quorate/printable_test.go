package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, with ümlauts 世界\t|\n":   "plain, with ümlauts 世界\t|\n",
		"\x1b]0;title\x07\x1b[2J":       `\x1b]0;title\a\x1b[2J`,
		"C1 \u009b31m, return \r, \x7f": `C1 \u009b31m, return \r, \x7f`,
		"half a rune \xc3":              `half a rune \xc3`,
		"right to left \u202e":          `right to left \u202e`,
	} {
		var b strings.Builder
		n, err := cli.Printable{W: &b}.Write([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, len(text), n)
		assert.Equal(t, want, b.String())
	}
}

// Everything that the command prints goes that way.
func TestTerminalGetsNoEscapes(t *testing.T) {
	var out, errs strings.Builder
	assert.Equal(t, cli.ExitUsage, execute([]string{"lock", "--\x1b[2J"}, &out, &errs))
	assert.Contains(t, errs.String(), `unknown flag: --\x1b[2J`)
}
