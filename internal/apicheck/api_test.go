package apicheck

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

// The API is what testdata/api.txt says. A change there is a change for users.
func TestListing(t *testing.T) {
	var lines []string
	for _, dir := range public {
		lines = append(lines, listing(typesOf(t, dir))...)
	}
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "api.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("gone from the API: %s", line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(want, line) {
			t.Errorf("new in the API: %s", line)
		}
	}
	if t.Failed() {
		t.Log("If users shall have this change: go test ./internal/apicheck -update, commit testdata/api.txt, and " +
			"say so in CHANGELOG.md.")
		t.Log("What is gone or changed breaks users. From v1 on that is for a new major version.")
	} else {
		assert.Equal(t, string(text), got, "only the order differs: go test ./internal/apicheck -update")
	}
}

// listing has one line for each exported symbol, field and method.
func listing(pkg *types.Package) (lines []string) {
	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	add := func(format string, args ...any) {
		lines = append(lines, pkg.Name()+": "+fmt.Sprintf(format, args...))
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		if c, ok := obj.(*types.Const); ok {
			add("%s = %s", types.ObjectString(c, short), c.Val())
			continue
		}
		typ, ok := obj.(*types.TypeName)
		if !ok {
			add("%s", types.ObjectString(obj, short))
			continue
		}
		switch u := typ.Type().Underlying().(type) {
		case *types.Struct:
			add("type %s struct", name)
			for f := range u.Fields() {
				if f.Exported() {
					add("field %s.%s %s", name, f.Name(), types.TypeString(f.Type(), short))
				}
			}
		case *types.Interface:
			add("type %s interface", name)
			sealed := false
			for m := range u.Methods() {
				sealed = sealed || !m.Exported()
				if m.Exported() {
					add("method %s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
				}
			}
			if sealed {
				add("%s has unexported methods", name)
			}
			continue
		default:
			add("type %s %s", name, types.TypeString(u, short))
		}
		for _, m := range methods(typ.Type()) {
			add("method %s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
		}
	}
	return lines
}

// methods are the exported methods that a pointer to a type has, also those
// that it has by embedding.
func methods(typ types.Type) (all []*types.Func) {
	for sel := range types.NewMethodSet(types.NewPointer(typ)).Methods() {
		if m := sel.Obj().(*types.Func); m.Exported() {
			all = append(all, m)
		}
	}
	return all
}

// No exported symbol has a type that users cannot name.
func TestNoInternalTypes(t *testing.T) {
	for _, dir := range public {
		pkg := typesOf(t, dir)
		for _, name := range pkg.Scope().Names() {
			if obj := pkg.Scope().Lookup(name); obj.Exported() {
				for _, hidden := range hiddenIn(obj) {
					t.Errorf("%s.%s shows %s, which users cannot name: wrap it, or make the field or method unexported",
						pkg.Name(), name, hidden)
				}
			}
		}
	}
}

// hiddenIn returns the types that an exported object shows and users cannot
// name.
func hiddenIn(obj types.Object) (hidden []string) {
	seen := map[types.Type]bool{}
	var visit func(types.Type)
	tuple := func(vars *types.Tuple) {
		for v := range vars.Variables() {
			visit(v.Type())
		}
	}
	visit = func(typ types.Type) {
		if typ == nil || seen[typ] {
			return
		}
		seen[typ] = true
		switch typ := typ.(type) {
		case *types.Alias:
			visit(types.Unalias(typ))
		case *types.Named:
			o := typ.Obj()
			if o.Pkg() != nil && (strings.Contains(o.Pkg().Path()+"/", "/internal/") || !o.Exported()) {
				hidden = append(hidden, o.Pkg().Path()+"."+o.Name())
			}
			for arg := range typ.TypeArgs().Types() {
				visit(arg)
			}
		case *types.Signature:
			for p := range typ.TypeParams().TypeParams() {
				visit(p.Constraint())
			}
			tuple(typ.Params())
			tuple(typ.Results())
		case *types.Struct:
			for f := range typ.Fields() {
				if f.Exported() {
					visit(f.Type())
				}
			}
		case *types.Interface:
			for m := range typ.ExplicitMethods() {
				if m.Exported() {
					visit(m.Type())
				}
			}
			for e := range typ.EmbeddedTypes() {
				visit(e)
			}
		case *types.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
			visit(typ.Elem())
		}
	}
	visit(obj.Type())
	if _, ok := obj.(*types.TypeName); ok {
		visit(obj.Type().Underlying())
		for _, m := range methods(obj.Type()) {
			visit(m.Type())
		}
	}
	return hidden
}

// What go doc prints names no internal package, values of variables included.
func TestDocShowsNoInternalPackage(t *testing.T) {
	for _, dir := range public {
		s := sourceOf(t, dir)
		internal := map[string]bool{} // names of imports
		for _, f := range s.files {
			for _, imp := range f.Imports {
				p, err := strconv.Unquote(imp.Path.Value)
				require.NoError(t, err)
				if strings.Contains(p, "/internal/") {
					internal[p[strings.LastIndex(p, "/")+1:]] = true
				}
			}
		}
		for _, sym := range s.symbols() {
			if sym.decl == nil {
				continue
			}
			inspectShown(sym.decl, func(n *ast.SelectorExpr) {
				if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] {
					t.Errorf("%s: go doc shows %s.%s in the declaration of %s",
						s.fset.Position(n.Pos()), x.Name, n.Sel.Name, sym.name)
				}
			})
		}
	}
}

// inspectShown calls f for the selectors that go doc shows: not for those in
// unexported fields and methods of types.
func inspectShown(decl ast.Node, f func(*ast.SelectorExpr)) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			shown := len(n.Names) == 0
			for _, name := range n.Names {
				shown = shown || name.IsExported() || !inType(decl)
			}
			return shown
		case *ast.SelectorExpr:
			f(n)
		}
		return true
	})
}

// inType: the fields of a declaration are those of a type, not parameters.
func inType(decl ast.Node) bool {
	d, ok := decl.(*ast.GenDecl)
	return ok && d.Tok == token.TYPE
}
