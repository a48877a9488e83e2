package apicheck

import (
	"go/ast"
	"go/doc/comment"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/once"
)

var (
	bracketed  = regexp.MustCompile(`\[[^\]\s]+\]`)
	definition = regexp.MustCompile(`^\[[^\]]+\]: https://`)
)

// Each name in brackets is a link that leads somewhere.
func TestLinks(t *testing.T) {
	known := map[string]bool{}
	for _, dir := range public {
		s := sourceOf(t, dir)
		known[s.doc.ImportPath] = true
		for _, sym := range s.all() {
			for name := range strings.SplitSeq(sym.name, ", ") {
				known[s.doc.ImportPath+" "+name] = true
			}
		}
	}
	for _, dir := range public {
		s := sourceOf(t, dir)
		p := s.doc.Parser()
		for _, sym := range s.all() {
			text := prose(sym.text)
			links, defined := docLinks(p.Parse(sym.text).Content)
			for _, l := range defined {
				page, ok := strings.CutPrefix(l.URL, "https://pkg.go.dev/")
				assert.True(t, ok && known[strings.Replace(page, "#", " ", 1)],
					"%s of %s: %s leads nowhere", sym.name, dir, l.URL)
			}
			for _, l := range links {
				pkg, name := l.ImportPath, l.Name
				if l.Recv != "" {
					name = strings.TrimPrefix(l.Recv, "*") + "." + name
				}
				if pkg == "" {
					pkg = s.doc.ImportPath
				}
				if strings.HasPrefix(pkg, module) && name != "" {
					assert.True(t, known[pkg+" "+name], "%s of %s: there is no %s in %s", sym.name, dir, name, pkg)
				}
			}
			assert.Len(t, bracketed.FindAllString(text, -1), len(links)+len(defined),
				"%s of %s: a name in brackets is no link: %s", sym.name, dir, text)
		}
	}
}

// all is symbols, and the documented fields, constants and methods within them.
func (s source) all() []symbol {
	all := s.symbols()
	for _, sym := range s.symbols() {
		d, ok := sym.decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				for _, name := range n.Names {
					all = append(all, symbol{name: sym.name + "." + name.Name, text: n.Doc.Text()})
				}
			case *ast.ValueSpec:
				all = append(all, symbol{name: n.Names[0].Name, text: n.Doc.Text()})
			}
			return true
		})
	}
	return all
}

// prose is a comment without its code.
func prose(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "\t") && !definition.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// docLinks are the links in the blocks of a comment: to symbols, and those that
// the comment defines.
func docLinks(blocks []comment.Block) (links []*comment.DocLink, defined []*comment.Link) {
	text := func(all []comment.Text) {
		for _, t := range all {
			switch l := t.(type) {
			case *comment.DocLink:
				links = append(links, l)
			case *comment.Link:
				if !l.Auto {
					defined = append(defined, l)
				}
			}
		}
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case *comment.Paragraph:
			text(b.Text)
		case *comment.Heading:
			text(b.Text)
		case *comment.List:
			for _, item := range b.Items {
				l, d := docLinks(item.Content)
				links, defined = append(links, l...), append(defined, d...)
			}
		}
	}
	return links, defined
}

// The string of each kind and state, and the text of each kind of error, stands
// in its documentation.
func TestStringsAreDocumented(t *testing.T) {
	texts := map[string]string{}
	for name, err := range map[string]error{
		"ErrHeld": quorate.ErrHeld, "ErrNoQuorum": quorate.ErrNoQuorum, "ErrLost": quorate.ErrLost,
		"ErrNotHeld": quorate.ErrNotHeld,
		"ErrClosed":  quorate.ErrClosed, "ErrReleased": quorate.ErrReleased, "ErrInvalid": quorate.ErrInvalid,
		"ErrNotRecorded": once.ErrNotRecorded, "ErrNotDurable": once.ErrNotDurable,
		"ErrNoLeader": leader.ErrNoLeader,
	} {
		texts[name] = err.Error()
	}
	documented := map[string]string{}
	for _, dir := range public {
		s := sourceOf(t, dir)
		for _, sym := range s.all() {
			documented[sym.name] += sym.text
		}
		for _, f := range s.files {
			for name, value := range stringConstants(t, f) {
				texts[name] = value
			}
		}
	}
	require.GreaterOrEqual(t, len(texts), 20)
	for name, text := range texts {
		assert.Contains(t, documented[name], strconv.Quote(text), name)
	}
}

// stringConstants are the exported string constants of a file.
func stringConstants(t *testing.T, f *ast.File) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			lit, ok := v.Values[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || !v.Names[0].IsExported() {
				continue
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			all[v.Names[0].Name] = text
		}
	}
	return all
}
