package sim

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/sim/play"
	"github.com/quorate/quorate/internal/trace"
)

var rewrite = flag.Bool("rewrite", false, "write what the traces in testdata lead to now into their files")

// traces returns the names of the trace files.
func traces(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	return files
}

// readTrace reads a trace file.
func readTrace(t *testing.T, file string) []trace.Block {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := trace.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return blocks
}

// TestTraces plays each trace and compares what it leads to. With -rewrite it
// writes that into the file: look at the difference before it is committed.
func TestTraces(t *testing.T) {
	for _, file := range traces(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			blocks := readTrace(t, file)
			played := play.PlayTrace(blocks, nil)
			if *rewrite {
				if err := os.WriteFile(file, []byte(trace.Format(played)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i, b := range blocks {
				if !slices.Equal(b.Output, played[i].Output) {
					t.Errorf("%q leads to\n%s\nand should to\n%s", b.Commands, join(played[i].Output), join(b.Output))
				}
			}
		})
	}
}

func join(lines []string) string { return "\t" + strings.Join(lines, "\n\t") }
