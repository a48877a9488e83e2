package report

import (
	"fmt"
	"strings"
)

const (
	// retainedSize is what the ticket of a name that is not locked takes, in
	// bytes: see docs/operate/capacity.md.
	retainedSize = 250
	// Fewer retained tickets than this, 25 MB, deserve no warning: after the
	// last lock they are all that an idle node has.
	manyRetained = 100_000
)

// keysOf returns how many keys a server has. INFO lists each database that is
// not empty. It is 0 if there are several, because it is unknown which of them
// this client uses.
func keysOf(fields map[string]string) (keys int) {
	for name, value := range fields {
		// INFO has nearly 200 fields, and Sscanf takes long to refuse one.
		if !strings.HasPrefix(name, "db") {
			continue
		}
		var db, n int
		if _, err := fmt.Sscanf(name+" "+value, "db%d keys=%d,", &db, &n); err != nil {
			continue
		}
		if keys > 0 {
			return 0
		}
		keys = n
	}
	return keys
}

// MayRetainMuch reports whether it is worth while to look at a sample of the
// server's keys.
func (r *Node) MayRetainMuch() bool { return r.Keys >= manyRetained }

// EstimateRetained sets r.Retained from a sample of the server's keys.
func (r *Node) EstimateRetained(retained, sample int) {
	if sample > 0 {
		r.Retained = r.Keys * retained / sample
	}
}
