package transport

import (
	"strings"
	"testing"
)

// A node may answer INFO with anything. What goes back to the node is short.
func FuzzInfo(f *testing.F) {
	for _, text := range []string{"", "run_id:a\r\nrole:master\r\n", "master_host:h\r\nmaster_port:1\r\n",
		"master_replid2:\r\n", "redis_mode:sentinel", ":::\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i := &Info{}
		i.parse(text)
		i.parse(text)
		if run := i.Run(); len(run) > 64+1+16 || strings.ContainsAny(run, " \t") {
			t.Errorf("%q is the run", run)
		}
	})
}
