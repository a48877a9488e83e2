package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is the library's code, package by package: no tests, no tools.
func source(t *testing.T, dirs ...string) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			packages[dir] = append(packages[dir], f)
		}
		require.NotEmpty(t, packages[dir], dir)
	}
	return packages
}

// library are the packages that a user links.
var library = []string{
	".", "mutex", "rwmutex", "semaphore", "once", "leader", "period", "flight", "shards", "members",
	"internal/core", "internal/peers", "internal/flow", "internal/report", "internal/script", "internal/fault",
	"internal/setup", "internal/wake", "internal/operator", "internal/transport", "internal/localqueue",
	"internal/protocol", "internal/lease", "internal/nodeset", "internal/change",
	"internal/repair", "internal/process", "internal/resp", "internal/script",
}

// constants are the constant strings of a package.
func constants(files []*ast.File) map[string]string {
	values := map[string]ast.Expr{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				for i, v := range s.(*ast.ValueSpec).Values {
					values[s.(*ast.ValueSpec).Names[i].Name] = v
				}
			}
		}
	}
	known := map[string]string{}
	for range 3 { // a constant may be made of others
		for name, v := range values {
			known[name] = written(v, known)
		}
	}
	return known
}

var verb = regexp.MustCompile(`%[-+#]?[\d.*]*(\[\d\][.\d*]*)?[a-zA-Z]`)

// written is a string as it stands in the code, with … for what only a run
// shows.
func written(e ast.Expr, known map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err == nil {
				return verb.ReplaceAllString(text, "…")
			}
		}
	case *ast.BinaryExpr:
		return written(e.X, known) + written(e.Y, known)
	case *ast.CallExpr:
		if name(e.Fun) == "Sprintf" || name(e.Fun) == "Errorf" || name(e.Fun) == "New" {
			return written(e.Args[0], known)
		}
	case *ast.Ident:
		if text, ok := known[e.Name]; ok {
			return text
		}
	}
	return "…"
}

func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// message is a line that the code may write: where, and at which level.
type message struct{ level, text string }

var levels = []string{"Debug", "Info", "Warn", "Error"}

// logged are all messages for a logger in the library.
func logged(t *testing.T) []message {
	var all []message
	for dir, files := range source(t, library...) {
		known := constants(files)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !strings.EqualFold(name(s.X), "logger") && name(s.X) != "log" {
					return true
				}
				switch {
				case slices.Contains(levels, s.Sel.Name):
					all = append(all, message{s.Sel.Name, written(call.Args[0], known)})
				case s.Sel.Name == "LogAttrs":
					level := strings.TrimPrefix(name(call.Args[1]), "Level")
					for _, text := range variants(f, call.Args[2], known) {
						all = append(all, message{level, text})
					}
				case s.Sel.Name == "With", s.Sel.Name == "Handler": // write nothing
				default:
					t.Errorf("%s: a call of the logger that this test does not know: %s", dir, s.Sel.Name)
				}
				return true
			})
		}
	}
	require.Greater(t, len(all), 20)
	for i := range all {
		var ok bool
		all[i].text, ok = strings.CutPrefix(all[i].text, "quorate: ")
		assert.True(t, ok, "%q begins with quorate:", all[i].text)
	}
	return all
}

// variants are the texts that a variable is given in a file, or what the
// expression says itself.
func variants(f *ast.File, e ast.Expr, known map[string]string) (texts []string) {
	variable := name(e)
	ast.Inspect(f, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i, to := range a.Lhs {
			if variable != "" && name(to) == variable {
				texts = append(texts, written(a.Rhs[i], known))
			}
		}
		return true
	})
	if texts == nil {
		texts = []string{written(e, known)}
	}
	return texts
}

// table are the rows of the table under a heading: the cells of each.
func table(t *testing.T, doc, heading string) (rows [][]string) {
	t.Helper()
	_, text, ok := strings.Cut(documents(t)[doc], "\n## "+heading+"\n")
	require.True(t, ok, "%s has the heading %q", doc, heading)
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			}
			rows = append(rows, cells)
		}
	}
	require.Greater(t, len(rows), 2, "%s: the table under %q", doc, heading)
	return rows[2:]
}

// begins reports whether text begins with what a document shows of it, where …
// stands for anything.
func begins(text, shown string) bool {
	parts := strings.Split(shown, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(p))
	}
	return regexp.MustCompile(`^\s*` + strings.Join(parts, `\s*.*\s*`)).MatchString(text)
}

// agree checks that each text is in a row, and each row in the code.
func agree(t *testing.T, doc string, texts, rows []string) {
	t.Helper()
	for _, text := range texts {
		n := 0
		for _, row := range rows {
			if begins(text, row) {
				n++
			}
		}
		assert.Equal(t, 1, n, "rows of %s that explain %q", doc, text)
	}
	for _, row := range rows {
		assert.True(t, slices.ContainsFunc(texts, func(text string) bool { return begins(text, row) }),
			"%s explains %q, which the code does not say", doc, row)
	}
}

// plain are warnings in the log that need no row in the guide: each says itself
// what to do, or needs no action.
var plain = regexp.MustCompile(`^(node may discard leases|node failed to write|node lost its data|development mode|this node was first used|` +
	`this machine was suspended|this process's clock stood still|cannot tell whether|could not share|a shard failed)`)

// The guide explains every warning and every error that the library may log,
// unless it is plain, and no other line, each with its level.
func TestLogLinesAreExplained(t *testing.T) {
	t.Parallel()
	var texts, rows []string
	for _, m := range logged(t) {
		if m.level == "Debug" || m.level == "Info" || plain.MatchString(m.text) {
			continue
		}
		texts = append(texts, strings.ToLower(m.level)+" "+m.text)
	}
	slices.Sort(texts)
	for _, cells := range table(t, "docs/operate/operations.md", "What the log says") {
		rows = append(rows, strings.ToLower(cells[1])+" "+cells[0])
	}
	agree(t, "docs/operate/operations.md", slices.Compact(texts), rows)
}

// The guide explains every kind of error that a user can test for.
func TestKindsOfErrorsAreExplained(t *testing.T) {
	t.Parallel()
	var texts, rows []string
	for dir, files := range source(t, ".", "mutex", "rwmutex", "semaphore", "once", "leader") {
		for _, f := range files {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.VAR {
					continue
				}
				for _, s := range g.Specs {
					for _, n := range s.(*ast.ValueSpec).Names {
						if strings.HasPrefix(n.Name, "Err") {
							texts = append(texts, strings.TrimPrefix(dir+".", "..")+n.Name)
						}
					}
				}
			}
		}
	}
	for _, cells := range table(t, "docs/reference/errors.md", "Kinds") {
		if strings.Contains(cells[0], "Err") {
			rows = append(rows, strings.TrimSuffix(cells[0], "`, beside `ErrNoQuorum"))
		}
	}
	assert.ElementsMatch(t, texts, rows, "docs/reference/errors.md, Kinds")
}

// ours are errors of the library that no error of a node shows: kinds, and what
// ends a connection's handshake inside, with words of its own.
var ours = regexp.MustCompile(`^(held by|no quorum|lock lost|not held|quorum closed|released|invalid use|connection closed|… while waiting|…$|…; …$)`)

// clear are errors of a node that need no row in the guide: each says itself
// what to do, or passes within moments.
var clear = regexp.MustCompile(`^(has not been asked yet|has not answered|not connected|is too old|the name is in use|the Sentinels know no master|others are ahead|its clock and this process's clock disagree|` +
	`has lost its data, or loaded another|is a Sentinel|is one server of a cluster|refuses new locks|this client's list|` +
	`reconnecting to verify|the node has no vote|this node was first used in development mode|WithTTL|has the data of another set of nodes; empty it|` +
	`has not recorded a set of nodes, and refused to|` +
	`another client is|did not answer with a master's address|there is a new master|still connecting|not delivered in time|` +
	`an answer |the nodes of this client's list|the client's provider of credentials|was a replica and is not writing|a later run has begun|fewer than a majority of the … listed Sentinels)`)

// The guide explains what the library says about a node in an error, unless the
// error is clear.
func TestErrorsOfNodesAreExplained(t *testing.T) {
	t.Parallel()
	var texts, rows []string
	for _, files := range source(t, "internal/core", "internal/peers", "internal/flow", "internal/fault",
		"internal/setup", "internal/operator", "internal/transport") {
		known := constants(files)
		for _, f := range files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.GenDecl:
					if d.Tok != token.VAR {
						continue
					}
					for _, s := range d.Specs {
						for _, v := range s.(*ast.ValueSpec).Values {
							if call, ok := v.(*ast.CallExpr); ok && name(call.Fun) == "New" && len(call.Args) == 1 {
								texts = append(texts, written(call, known))
							}
						}
					}
				case *ast.FuncDecl:
					if d.Name.Name != "Error" || d.Recv == nil {
						continue
					}
					ast.Inspect(d.Body, func(n ast.Node) bool {
						if r, ok := n.(*ast.ReturnStmt); ok {
							texts = append(texts, written(r.Results[0], known))
						}
						return true
					})
				}
			}
		}
	}
	texts = slices.DeleteFunc(texts, func(text string) bool {
		return ours.MatchString(text) || clear.MatchString(text)
	})
	slices.Sort(texts)
	for _, cells := range table(t, "docs/reference/errors.md", "What an error says of a node") {
		rows = append(rows, strings.Split(cells[0], "; ")...)
	}
	agree(t, "docs/reference/errors.md", slices.Compact(texts), rows)
}
