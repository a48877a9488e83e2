package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

const (
	prefix = "//mutant:"
	list   = "docs/internals/rules.md"

	// switchboard is the package that the copies import, and overlaid its file
	// that says so.
	switchboard = `; import mutant_ "github.com/quorate/quorate/internal/testkit/mutant"`
	overlaid    = "internal/testkit/mutant/overlaid.go"
)

// overlay is the result of reading all marks of a module.
type overlay struct {
	copies map[string][]byte          // by the file's path below the root
	marked map[string]map[string]bool // rules, and the files with their marks
}

// read reads all marks below a directory. Its error names each mark that marks
// nothing or an unknown rule, and each rule that has no mark.
func read(root string) (*overlay, error) {
	o := &overlay{map[string][]byte{overlaid: []byte("package mutant\n\nconst Overlaid = true\n")},
		map[string]map[string]bool{}}
	var wrong []error
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "testkit" || path != root && d.Name()[0] == '.'):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(prefix)) {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := &file{name: filepath.ToSlash(name), text: text, marked: o.marked}
		switched, err := f.rewrite()
		wrong, o.copies[f.name] = append(wrong, err), switched
		return nil
	})
	for _, r := range mutant.All {
		if o.marked[r.Name] == nil {
			wrong = append(wrong, fmt.Errorf("no mark names rule %s", r.Name))
		}
	}
	return o, errors.Join(append(wrong, err)...)
}

// file is one file with marks.
type file struct {
	name   string
	text   []byte
	tree   *token.File
	edits  []edit
	marked map[string]map[string]bool
}

// edit inserts text at an offset. Edits preserve line numbers, so a failure in
// a copy shows the line of the original.
type edit struct {
	at   int
	text string
}

func (f *file) rewrite() ([]byte, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.name, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f.tree = fset.File(parsed.Pos())
	f.put(parsed.Name.End(), switchboard)
	var wrong []error
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, prefix) {
				wrong = append(wrong, f.mark(parsed, c))
			}
		}
	}
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.at - b.at })
	var copied []byte
	from := 0
	for _, e := range f.edits {
		copied = append(append(copied, f.text[from:e.at]...), e.text...)
		from = e.at
	}
	return append(copied, f.text[from:]...), errors.Join(wrong...)
}

func (f *file) put(at token.Pos, text string) {
	f.edits = append(f.edits, edit{f.tree.Offset(at), text})
}

// mark applies one mark.
func (f *file) mark(parsed *ast.File, c *ast.Comment) error {
	rules, value, _ := strings.Cut(strings.TrimPrefix(c.Text, prefix), "=")
	m := mark{file: f, value: value, end: c.Pos(), line: f.tree.Line(c.Pos())}
	var on []string
	for rule := range strings.SplitSeq(rules, ",") {
		place := mutant.Place(rule)
		if place < 0 {
			return fmt.Errorf("%s:%d: there is no rule %q", f.name, m.line, rule)
		}
		if f.marked[rule] == nil {
			f.marked[rule] = map[string]bool{}
		}
		f.marked[rule][f.name] = true
		on = append(on, fmt.Sprintf("mutant_.On(%d)", place))
		m.place, m.constant = place, mutant.IsConstant(rule)
	}
	m.on = "(" + strings.Join(on, " && ") + ")"
	ast.Inspect(parsed, func(n ast.Node) bool {
		if n != nil && !m.done && f.tree.Line(n.Pos()) <= m.line && m.line <= f.tree.Line(n.End()) {
			m.visit(n)
			return true
		}
		return false
	})
	if !m.done {
		return fmt.Errorf("%s:%d: nothing that %s can mark begins on this line", f.name, m.line, c.Text)
	}
	return nil
}
