package doccheck

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// persons are banned in comments beside banned. A document may write of people,
// but in the code the actor is a node, a client, a claim, a holder, a waiter or
// a caller.
var persons = regexp.MustCompile(`(?i)\b(who|whom)\b`)

// No comment of a Go file is wider than 80 columns. No comment of a Go or Lua
// file, and no text in a Go file, has a banned word outside of quotations. The
// two files that list the words are left out.
func TestWordsOfTheCode(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(name, "_doccheck-"), d.IsDir() && name == ".git":
			return filepath.SkipDir // the fragments of TestGoBlocksCompile are the documents'
		case d.IsDir() || strings.HasSuffix(path, "doccheck/words_test.go") || strings.HasSuffix(path, "apicheck/doc_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		switch filepath.Ext(path) {
		case ".go":
			goWords(t, path, text)
		case ".lua":
			luaWords(t, path, string(text))
		default:
			return nil
		}
		files++
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 300)
}

// goWords checks the comments and texts of a Go file.
func goWords(t *testing.T, path string, text []byte) {
	t.Helper()
	set := token.NewFileSet()
	file := set.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			refuseWide(t, set.Position(pos), text, lit)
			refuse(t, set.Position(pos).String(), quoted.ReplaceAllString(lit, ""), banned, persons)
		case token.STRING:
			refuse(t, set.Position(pos).String(), lit, banned)
		}
	}
}

// refuseWide reports a comment that has a line of its own and is wider than 80
// columns, with four for a tab. Code, tables and lists in comments are as wide
// as they have to be.
func refuseWide(t *testing.T, at token.Position, text []byte, comment string) {
	t.Helper()
	indent := text[at.Offset-at.Column+1 : at.Offset]
	body, prose := strings.CutPrefix(comment, "// ")
	if !prose || strings.Contains(body, "  ") || !strings.Contains(body, " ") || strings.Trim(string(indent), "\t") != "" {
		return
	}
	if columns := 4*len(indent) + utf8.RuneCountInString(comment); columns > 80 {
		t.Errorf("%s: the comment has %d columns: reflow it to 80", at, columns)
	}
}

// luaWords checks the comments of a Lua file: all behind "--".
func luaWords(t *testing.T, path, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if _, comment, ok := strings.Cut(line, "--"); ok {
			refuse(t, path, quoted.ReplaceAllString(comment, ""), banned, persons)
		}
	}
}

// refuse reports the words of the lists in a text.
func refuse(t *testing.T, at, text string, lists ...*regexp.Regexp) {
	t.Helper()
	for _, list := range lists {
		for _, word := range list.FindAllString(text, -1) {
			t.Errorf("%s: %q: name the actor, or use the standard word", at, word)
		}
	}
}
