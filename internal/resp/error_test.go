package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A node's error is one line, and not longer than a log can bear.
func TestErrorsAreOneShortLine(t *testing.T) {
	t.Parallel()
	forged := "ERR a\nb\tc\fd\x1b[2J"
	for _, wire := range []string{"-ERR a\tb\x1b[2J\r\n", fmt.Sprintf("!%d\r\n%s\r\n", len(forged), forged)} {
		_, err := NewReader(strings.NewReader(wire)).Read()
		var is Error
		assert.ErrorAs(t, err, &is)
		assert.NotRegexp(t, `[[:cntrl:]]`, is.Error())
		assert.Equal(t, "ERR", is.Code())
	}
	long := "ERR " + strings.Repeat("x", 1<<20)
	_, err := NewReader(strings.NewReader(fmt.Sprintf("!%d\r\n%s\r\n", len(long), long))).Read()
	assert.Less(t, len(err.Error()), 1100)
}
