// Package doccheck compiles or runs each block of code in the documents, and
// checks the facts in them against the code: links, names of tests, rules,
// commands, log lines and warnings.
package doccheck

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// documents are the README, all of docs, the other texts of the root, and the
// vocabulary of traces.
func documents(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"),
		func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".md" {
				files = append(files, path)
			}
			return err
		}))
	require.NotEmpty(t, files)
	files = append(files, filepath.Join(root, "internal", "sim", "testdata", "README.md"))
	texts := map[string]string{}
	for _, f := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"),
		filepath.Join(root, "SECURITY.md"), filepath.Join(root, "CHANGELOG.md")) {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		name, err := filepath.Rel(root, f)
		require.NoError(t, err)
		texts[name] = string(b)
	}
	return texts
}

// imports are the packages that a fragment may use without saying so.
var imports = map[string]string{
	"bytes": "bytes", "context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log",
	"os": "os", "signal": "os/signal", "slog": "log/slog",
	"sql": "database/sql", "strconv": "strconv", "sync": "sync", "syscall": "syscall", "time": "time",
	"tls": "crypto/tls", "x509": "crypto/x509",
	"redis": "github.com/redis/go-redis/v9", "quorate": "github.com/quorate/quorate",
	"mutex":   "github.com/quorate/quorate/mutex",
	"rwmutex": "github.com/quorate/quorate/rwmutex", "semaphore": "github.com/quorate/quorate/semaphore",
	"once": "github.com/quorate/quorate/once", "fence": "github.com/quorate/quorate/fence",
	"leader": "github.com/quorate/quorate/leader",
	"flight": "github.com/quorate/quorate/flight", "shards": "github.com/quorate/quorate/shards",
	"period": "github.com/quorate/quorate/period", "members": "github.com/quorate/quorate/members",
	"quoratetest": "github.com/quorate/quorate/quoratetest",
	"inspect":     "github.com/quorate/quorate/inspect", "testing": "testing", "synctest": "testing/synctest",
}

// prelude declares what a fragment may refer to: what the reader has by then.
const prelude = `
var (
	ctx         context.Context
	q           *quorate.Quorum
	m           *mutex.Mutex
	db          *sql.DB
	doc         string
	password    string
	pool        *x509.CertPool
	certificate tls.Certificate
	nodes       []redis.UniversalClient
	store       interface{ Put(context.Context, string, uint64) error }
)

func export(context.Context) error           { return nil }
func migrate(context.Context) error          { return nil }
func report(context.Context, time.Time, uint64) error { return nil }
func serve(context.Context, int, uint64) error { return nil }
func load() string                           { return "" }
func ask(context.Context) (map[string]float64, error) { return nil, nil }
func schedule(context.Context, uint64)       {}
func work()                                  {}
`

// Every Go block compiles: a whole program as it stands; declarations alongside
// what the reader has; statements in a function.
func TestGoBlocksCompile(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, b := range of(t, "go") {
		file, err := parser.ParseFile(fset, "", program(b), parser.SkipObjectResolution)
		if assert.NoError(t, err) {
			files = append(files, file)
		}
	}
	known := exports(t, files)
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(known[path]) }
	check := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup), Error: func(err error) {
		if !fragment(err.Error()) {
			t.Error(err)
		}
	}}
	for _, file := range files {
		_, _ = check.Check("block", fset, []*ast.File{file}, nil)
	}
}

// exports are the files with what each package exports that a block imports.
// The go command compiles them, or has them in its cache: so only those.
func exports(t *testing.T, blocks []*ast.File) map[string]string {
	t.Helper()
	paths := map[string]bool{}
	for _, b := range blocks {
		for _, imp := range b.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			paths[path] = true
		}
	}
	list := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	cmd := exec.Command("go", slices.AppendSeq(list, maps.Keys(paths))...)
	var said strings.Builder
	cmd.Dir, cmd.Stderr = root, &said
	out, err := cmd.Output()
	require.NoError(t, err, &said)
	known := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[path] = file
	}
	return known
}

// fragment: a fragment need not use what it declares.
func fragment(line string) bool {
	return strings.Contains(line, "declared and not used") || strings.Contains(line, "imported and not used")
}

var selector = regexp.MustCompile(`\b([a-z0-9]+)\.[A-Z]`)

// program makes a file of a block. Positions are those of the document. No
// package is called main, so nothing is linked.
func program(of block) string {
	at, block := fmt.Sprintf("//line %s:%d\n", of.name, of.line), of.text
	if strings.Contains(block, "package main") {
		return at + strings.Replace(block, "package main", "package program", 1)
	}
	var b strings.Builder
	b.WriteString("package fragment\n\nimport (\n")
	seen := map[string]bool{}
	for _, use := range selector.FindAllStringSubmatch(prelude+block, -1) {
		if path := imports[use[1]]; path != "" && !seen[path] {
			seen[path] = true
			fmt.Fprintf(&b, "\t%s %q\n", use[1], path)
		}
	}
	b.WriteString(")\n" + prelude + "\n")
	if regexp.MustCompile(`(?m)^func `).MatchString(block) {
		return b.String() + at + block
	}
	return b.String() + "func _() {\n" + at + block + "\n}\n"
}

var (
	picture = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	mark    = regexp.MustCompile("[^a-z0-9 _-]")
)

// Every relative link leads to a file, and to a heading there. Every picture is
// there.
func TestLinks(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, p := range picture.FindAllStringSubmatch(text, -1) {
			assert.FileExists(t, filepath.Join(root, filepath.Dir(name), p[1]), name)
		}
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(l[1], "://") || l[0] == "]()" {
				continue
			}
			to := name
			if l[1] != "" {
				to = filepath.Join(filepath.Dir(name), l[1])
				_, err := os.Stat(filepath.Join(root, to))
				assert.NoError(t, err, "%s links to %s", name, l[1])
			}
			if l[2] == "" {
				continue
			}
			anchors := []string{}
			for _, h := range heading.FindAllStringSubmatch(texts[to], -1) {
				anchors = append(anchors,
					"#"+strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			assert.Contains(t, anchors, l[2], "%s links to %s%s", name, l[1], l[2])
		}
	}
}
