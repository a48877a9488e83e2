// Command overlay writes the overlay of the mutants, and prints its path:
//
//	go test -tags mutants -overlay=$(go run ./internal/testkit/mutant/overlay) ./internal/sim
//
// In the overlay each file with a mark is replaced by a copy that asks package
// mutant whether the rule is on. A mark is a comment at the end of a line:
//
//	//mutant:RULE         without the rule, what begins on this line is not there
//	//mutant:RULE=VALUE   without the rule, it has this value instead
//
// What begins on a line is a function, an if or case (its condition is false), an
// operand of && or || (the others decide), or a statement (it is skipped). A
// value replaces what a function or return returns, an assignment assigns, a
// condition or an operand says. The mark of a constant is at the end of an
// assignment or a return, whose value is halved or doubled. Two rules in one mark
// have a comma between them: what they mark is left out without either.
//
// With -doc, overlay writes docs/internals/rules.md: the list of the rules, and
// where each is marked.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

func main() {
	doc := flag.Bool("doc", false, "write docs/internals/rules.md")
	flag.Parse()
	path, err := run(*doc)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// run returns the path of what it has written. It runs in the directory of the
// library's module, and each such directory has one for its copies.
func run(doc bool) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	o, err := read(root)
	switch {
	case err != nil:
		return "", err
	case doc:
		return list, os.WriteFile(list, []byte(o.table()), 0o644)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "quorate-mutants", fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(root))))
	path := filepath.Join(dir, "overlay.json")
	replace := map[string]string{}
	for name, text := range o.copies {
		to := filepath.Join(dir, name)
		if err := put(to, text); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return path, put(path, text)
}

// put writes a file if it has another text. A compiler may be reading it.
func put(path string, text []byte) error {
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
}
