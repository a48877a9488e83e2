package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file of --config may have any content. It is read or refused, and no error
// quotes a value of it.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "nodes: a:1,b:1\nprefix: p\nguard: 30s\n", "nodes:\n  - redis://:%s@a:1\n  - b:1\n",
		"nodes: [a:1, [b:1]]\n", "guard: {a: %s}\n",
		"password-file: %s\npassword-file: b\n", "- %s\n", "nodes: &a [*a]\n", "nodes: !!binary %s\n",
		"? [%s]\n: b\n", "nodes: |\n  %s\n...\n---\n", "%YAML 9.9\n---\n\tnodes: %s\n",
	} {
		f.Add(text)
	}
	const secret = "s3cretvalue"
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "quorate.yaml")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "%s", secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := readConfig(path)
		if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(err.Error(), "unknown key") {
			t.Fatalf("%q: the error quotes the file: %v", text, err)
		}
		for key := range all {
			if err != nil || !slices.Contains(shared, key) {
				t.Fatalf("%q: %q, %v", text, key, err)
			}
		}
	})
}
