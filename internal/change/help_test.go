package change_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
)

const day = "19a00000000" // milliseconds, as in a ballot

func ballot(n int) nodeset.Ballot { return nodeset.Ballot(fmt.Sprintf("%s%08x", day, n)) }

// setOf is a first configuration of some addresses, proposed under ballot n.
func setOf(n int, addrs ...string) *nodeset.Configuration {
	settings := nodeset.Shared{Guard: 20 * time.Second, Retention: 5 * time.Minute}
	stamp := nodeset.StampOf(1, ballot(n))
	c := &nodeset.Configuration{Stamp: stamp, Origin: stamp, Now: settings, Next: settings, Last: len(addrs) - 1}
	for i, a := range addrs {
		c.Members = append(c.Members, nodeset.Member{Number: i, Identity: fmt.Sprintf("%s-%d", a, n), Addr: a})
	}
	return c
}

var abc = []string{"A", "B", "C"}
