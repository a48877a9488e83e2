package cli

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A URL that was given to the wrong flag is quoted by whatever refuses it. Its
// password is not.
func TestPrintableHidesPasswords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`invalid argument "redis://:pw@h" for "--ttl" flag`:               `invalid argument "redis://…@h" for "--ttl" flag`,
		`invalid argument "rediss://a:p w/x@h:1/2" for x`:                 `invalid argument "rediss://…@h:1/2" for x`,
		`unknown command redis+cluster://u:pw@h, and user@host`:           `unknown command redis+cluster://…@h, and user@host`,
		`redis://s1:1?master_name=m&password=pw&addr=b:1 is none`:         `redis://s1:1?master_name=m&password=…&addr=b:1 is none`,
		`give it as rediss://; the node sentinel:m@s1:26379 has answered`: `give it as rediss://; the node sentinel:m@s1:26379 has answered`,
	} {
		var out bytes.Buffer
		fmt.Fprint(Printable{&out}, text)
		assert.Equal(t, want, out.String())
	}
}
