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
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the directory of the library's module")
	dir := flag.String("o", "", "where to write the overlay; a directory of its own below that for temporary files")
	doc := flag.Bool("doc", false, "write docs/internals/rules.md")
	flag.Parse()
	path, err := run(*root, *dir, *doc)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// run returns the path of the file that it has written.
func run(root, dir string, doc bool) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	o, err := read(root)
	if err != nil {
		return "", err
	}
	if doc {
		path := filepath.Join(root, list)
		return path, os.WriteFile(path, []byte(o.table()), 0o644)
	}
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("quorate-mutants-%08x", crc32.ChecksumIEEE([]byte(root))))
	}
	return o.write(root, dir)
}

// write writes the copies, and the file that go build -overlay takes.
func (o *overlay) write(root, dir string) (string, error) {
	var files struct{ Replace map[string]string }
	files.Replace = map[string]string{}
	for name, text := range o.copies {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		files.Replace[filepath.Join(root, name)] = to
	}
	text, err := json.MarshalIndent(files, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}
