package setup

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A list of nodes is read or refused, and no error quotes a password.
func FuzzParseNodes(f *testing.F) {
	for _, url := range []string{"a:6379", "redis://u:pw@a:1/2", "rediss://a?addr=b:1&master_name=m",
		"redis+cluster://a?addr=b:1", "unix:///s", "a,,b", "redis://[::1]:6379"} {
		f.Add(url)
	}
	const secret = "s3cr3t-1"
	f.Fuzz(func(t *testing.T, url string) {
		all, err := ParseNodes([]string{url})
		if err == nil {
			for _, a := range all {
				if a.Name() == "" {
					t.Errorf("%q has a node without a name", url)
				}
				_ = a.Prepare(func(*redis.Options) error { return nil })
			}
		}
		if strings.Contains(url, secret[:4]) {
			return
		}
		_, err = ParseNodes([]string{strings.Replace(url, "://", "://:"+secret+"@", 1)})
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the password: %v", err)
		}
	})
}
