package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// keysOf parses only the few fields of INFO that are about databases, because
// to parse one costs an allocation or more. The test counts allocations, so it is
// not parallel.
func TestKeysOfSeveralDatabasesAreUnknown(t *testing.T) {
	var info strings.Builder
	for i := range 200 {
		fmt.Fprintf(&info, "field_%d:%d\r\n", i, i)
	}
	fields := InfoFields(info.String() + "dbs:1\r\ndb0:keys=5,expires=1,avg_ttl=0\r\n")
	assert.Equal(t, 5, keysOf(fields))
	assert.Less(t, testing.AllocsPerRun(10, func() { keysOf(fields) }), 20.0)
	fields["db1"] = "keys=7,expires=0,avg_ttl=0"
	assert.Zero(t, keysOf(fields))
}
