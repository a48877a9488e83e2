package redsync_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// All that redsync exports is here, and its functions and methods have the same
// types. New takes a quorum in place of pools.
func TestSurface(t *testing.T) {
	theirs, ours := exported(t, redsyncDir(t)), exported(t, ".")
	require.Greater(t, len(theirs), 40)
	require.Contains(t, theirs, "Mutex.ExtendContext")
	delete(theirs, "New")
	for name, signature := range theirs {
		assert.Equal(t, signature, ours[name], name)
	}
}

// The guide has a place for each function, method, option and error of redsync.
// What it says of Lock holds for LockContext.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/use/from-redsync.md")
	require.NoError(t, err)
	for name, kind := range exported(t, redsyncDir(t)) {
		of, method, is := strings.Cut(name, ".")
		if is && of != "Mutex" && of != "Redsync" || kind == "type" && !strings.Contains(name, "Err") {
			continue // of an error or option, or the type of one
		}
		if is {
			name = strings.TrimSuffix(method, "Context")
		}
		assert.Regexp(t, "`(\\w+\\.)?"+name+`\b`, string(guide), name)
	}
}

// redsyncDir is where redsync's source is.
func redsyncDir(t *testing.T) string {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/go-redsync/redsync/v4").CombinedOutput()
	require.NoError(t, err, string(dir))
	return strings.TrimSpace(string(dir))
}

// exported returns what the package in a directory exports: the types of its
// functions and methods, without the names of parameters.
func exported(t *testing.T, dir string) map[string]string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + name
				}
				if ast.IsExported(d.Name.Name) && ast.IsExported(name) {
					all[name] = "func(" + fields(d.Type.Params) + ") (" + fields(d.Type.Results) + ")"
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							all[s.Name.Name] = "type"
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							if n.IsExported() {
								all[n.Name] = d.Tok.String()
							}
						}
					}
				}
			}
		}
	}
	return all
}

// fields are the types of parameters or results.
func fields(l *ast.FieldList) string {
	var all []string
	if l != nil {
		for _, f := range l.List {
			for range max(1, len(f.Names)) {
				all = append(all, types.ExprString(f.Type))
			}
		}
	}
	return strings.Join(all, ", ")
}
