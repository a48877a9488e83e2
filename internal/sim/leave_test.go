package sim

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/sim/play"
	"github.com/quorate/quorate/internal/trace"
)

// A leave that was under way when its connection broke is sent again on the next
// connection, and answered there only.
func TestLeaveThatIsSentAgainIsAnsweredOnce(t *testing.T) {
	blocks, err := trace.Parse(`nodes 3 ttl 8s
claim e
----

hold e>1 1>e
leave e
break e>1
connect e>1
flight
----

deliver e>1 leave
flight
----
`)
	if err != nil {
		t.Fatal(err)
	}
	played := play.PlayTrace(blocks, nil)
	want := []string{"e>1 leave: ok", "under way: late e>1 leave, 1>e leave"}
	if has := played[len(played)-1].Output; !slices.Equal(has, want) {
		t.Errorf("the node answers:\n%s\nand should:\n%s", join(has), join(want))
	}
}
