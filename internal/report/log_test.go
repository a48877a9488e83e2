package report

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Of what goes for all buckets the log has one line for each server and cause;
// what is of a name is all there.
func TestOneLineForAllBuckets(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := RecentLines{}
	var logs []*slog.Logger
	for i := range 64 {
		logs = append(logs,
			slog.New(Deduplicate(slog.NewTextHandler(&b, nil).WithAttrs([]slog.Attr{slog.Int("bucket", i)}), &all)))
	}
	for i, l := range logs {
		for server := range 3 {
			for _, why := range []string{"connection reset", "connection refused"} {
				l.Warn("node is down", "node", "c", "error",
					fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:%d: %s", 5000+i, server, why))
			}
		}
		l.Warn("a hold was lost", "name", fmt.Sprint(i))
	}
	assert.Equal(t, 6, strings.Count(b.String(), "node is down"))
	assert.Equal(t, 64, strings.Count(b.String(), "a hold was lost"))
	assert.True(t, all.isNew("node is down", time.Now()))
	assert.False(t, all.isNew("node is down", time.Now()))
	assert.True(t, all.isNew("node is down", time.Now().Add(repeatAfter)))
	assert.Len(t, all.when, 1, "old lines are forgotten")
}
