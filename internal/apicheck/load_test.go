// Package apicheck holds the public packages to what users rely on: the listing
// of the API, options that compile only where they apply, and documentation.
package apicheck

import (
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/quorate/quorate"
)

// public are the packages that users import, by their folders.
var public = []string{".", "mutex", "rwmutex", "semaphore", "once", "leader", "period", "flight", "shards",
	"members", "inspect", "health", "quoratetest"}

// importPath returns the import path of a public package.
func importPath(dir string) string { return path.Join(module, dir) }

// exported finds the export data of packages. The go command compiles them, or
// has them in its cache.
var exported = sync.OnceValues(func() (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, dir := range public {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = file
	}
	return files, err
})

// positions are those of all packages: the importer keeps what it has read.
var positions = token.NewFileSet()

// compiled imports compiled packages.
var compiled = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		files, err := exported()
		if err != nil {
			return nil, err
		}
		return os.Open(files[path])
	})
})

// typesOf returns the types of a public package.
func typesOf(t *testing.T, dir string) *types.Package {
	t.Helper()
	pkg, err := compiled().Import(importPath(dir))
	require.NoError(t, err)
	return pkg
}

// source is a public package as it is written.
type source struct {
	fset  *token.FileSet
	files []*ast.File
	doc   *doc.Package
}

// sourceOf parses a public package with its external tests, from which go/doc
// takes the examples.
func sourceOf(t *testing.T, dir string) source {
	t.Helper()
	if s, ok := parsed[dir]; ok {
		return s
	}
	s := source{fset: positions}
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	var tests []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, f)
		} else {
			s.files = append(s.files, f)
		}
	}
	s.doc, err = doc.NewFromFiles(s.fset, append(s.files, tests...), importPath(dir), doc.PreserveAST)
	require.NoError(t, err)
	parsed[dir] = s
	return s
}

// parsed are the sources that a test has read before.
var parsed = map[string]source{}

// symbol is one thing that go doc shows.
type symbol struct {
	name string // with its type: Mutex.Lock
	text string // its documentation
	decl ast.Node
}

// symbols returns what go doc shows of a package, the package itself first.
func (s source) symbols() []symbol {
	all := []symbol{{name: "package " + s.doc.Name, text: s.doc.Doc}}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			all = append(all, symbol{prefix + f.Name, f.Doc, signature(f.Decl)})
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			all = append(all, symbol{strings.Join(v.Names, ", "), v.Doc, v.Decl})
		}
	}
	values(s.doc.Consts)
	values(s.doc.Vars)
	funcs("", s.doc.Funcs)
	for _, t := range s.doc.Types {
		all = append(all, symbol{t.Name, t.Doc, t.Decl})
		values(t.Consts)
		values(t.Vars)
		funcs("", t.Funcs)
		funcs(t.Name+".", t.Methods)
	}
	return all
}

// signature is a function without its body.
func signature(f *ast.FuncDecl) *ast.FuncDecl {
	return &ast.FuncDecl{Doc: f.Doc, Recv: f.Recv, Name: f.Name, Type: f.Type}
}
