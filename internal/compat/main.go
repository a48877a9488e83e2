// Command compat runs the acceptance suite (TestCompatibility of internal/e2e)
// on one server binary after the other, and writes what came of it as a table.
//
//	go run ./internal/compat [-md docs/reference/compatibility.md] /usr/bin/redis-server /opt/valkey/valkey-server
//
// It exits with 1 if a part of the suite has failed on a server.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/compat/suite"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func main() {
	md := flag.String("md", "", "the document whose table is replaced (default: the table is printed)")
	flag.Parse()
	if err := run(flag.Args(), *md); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(servers []string, md string) error {
	if len(servers) == 0 {
		return errors.New("which servers? make compat SERVER=/usr/bin/redis-server, several with blanks between " +
			"them and quotes around all")
	}
	var rows []row
	failed := false
	for _, s := range servers {
		r, err := try(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		fmt.Fprintln(os.Stderr, r)
		failed = failed || r.failed()
		rows = append(rows, r)
	}
	if err := write(table(rows), md); err != nil {
		return err
	}
	if failed {
		return errors.New("a part of the suite has failed")
	}
	return nil
}

// row is what came of the suite on one server: by part, what came of it alone
// and on three.
type row struct {
	name, version string
	results       map[string]string // by the name of the subtest: pass, fail or skip
}

// described is what a server says of itself, such as "Redis server v=7.0.15
// sha=…".
// Valkey 7.2 leaves its name out: "Server v=7.2.14 sha=…".
var described = regexp.MustCompile(`^(?:(\w+) s|S)erver v=((\d+)\S*)`)

// oldest is the first version of Redis whose scripts may read the clock and
// then write.
const oldest = 5

// describe reads what the binary at a path says of itself.
func describe(path string, said []byte) (r row, err error) {
	words := described.FindSubmatch(said)
	if words == nil {
		return r, fmt.Errorf("it says of itself %q, which is no Redis", bytes.TrimSpace(said))
	}
	r = row{name: string(words[1]), version: string(words[2]), results: map[string]string{}}
	if r.name == "" {
		name, _, _ := strings.Cut(filepath.Base(path), "-")
		r.name = strings.ToUpper(name[:1]) + name[1:]
	}
	if major, err := strconv.Atoi(string(words[3])); err == nil && major < oldest {
		return r, fmt.Errorf("%s %s is too old: its scripts cannot read the clock and then write; Redis %d.0 or "+
			"later is needed", r.name, r.version, oldest)
	}
	return r, nil
}

// try runs the suite on one server.
func try(server string) (row, error) {
	server, err := filepath.Abs(server)
	if err != nil {
		return row{}, err
	}
	out, err := exec.Command(server, "--version").Output()
	if err != nil {
		return row{}, err
	}
	r, err := describe(server, out)
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "compat-")
	if err != nil {
		return row{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Symlink(server, filepath.Join(dir, redistest.Binary)); err != nil {
		return row{}, err
	}
	test := exec.Command("go", "test", "./internal/e2e", "-run", "^TestCompatibility$",
		"-count=1", "-timeout=10m", "-json")
	test.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		suite.Variable+"=1")
	events, ran := test.Output()
	return r, r.read(events, ran)
}

// read takes the results from what go test writes. A failure's text goes to the
// standard error.
func (r *row) read(events []byte, ran error) error {
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 1<<20)
	var said []string
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // what the compiler says
		}
		switch e.Action {
		case "output":
			said = append(said, e.Output)
		case "pass", "fail", "skip":
			r.results[strings.TrimPrefix(e.Test, "TestCompatibility/")] = e.Action
		}
	}
	for _, size := range []string{"alone", "three"} {
		for _, part := range suite.Parts {
			if r.results[size+"/"+part] == "" {
				return fmt.Errorf("%s on %s has not run: %w\n%s", part, size, ran, strings.Join(said, ""))
			}
		}
	}
	if ran != nil {
		fmt.Fprint(os.Stderr, strings.Join(said, ""))
	}
	return lines.Err()
}

func (r row) failed() bool {
	return slices.ContainsFunc(r.cells(), func(c string) bool { return c == "fails" })
}

// cells are one for each part.
func (r row) cells() (cells []string) {
	for _, part := range suite.Parts {
		alone, three := r.results["alone/"+part], r.results["three/"+part]
		switch {
		case alone == "fail" || three == "fail":
			cells = append(cells, "fails")
		case alone == "skip" || three == "skip":
			cells = append(cells, "–")
		default:
			cells = append(cells, "yes")
		}
	}
	return cells
}

func (r row) String() string {
	return "| " + strings.Join(append([]string{r.name, r.version}, r.cells()...), " | ") + " |"
}

func table(rows []row) string {
	head := append([]string{"Server", "Version"}, suite.Parts...)
	lines := []string{"| " + strings.Join(head, " | ") + " |", strings.Repeat("|---", len(head)) + "|"}
	for _, r := range rows {
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n") + "\n"
}

// The table stands between these lines.
const begin, end = "<!-- compat: begin -->\n", "<!-- compat: end -->"

func write(table, md string) error {
	if md == "" {
		fmt.Print(table)
		return nil
	}
	text, err := os.ReadFile(md)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no table between %q and %q", md, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(md, []byte(before+begin+table+end+after), 0o644)
}
