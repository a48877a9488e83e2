package doccheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// block is one fenced block of a document.
type block struct {
	name string // of the document
	line int    // of its first line
	lang string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.name, b.line) }

// blocks are all fenced blocks, in order.
func blocks(t *testing.T) []block {
	t.Helper()
	var all []block
	texts := documents(t)
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var b *block
		line := 0
		for l := range strings.Lines(texts[name]) {
			line++
			fence, isFence := strings.CutPrefix(l, "```")
			switch {
			case isFence && b == nil:
				b = &block{name: name, line: line + 1, lang: strings.TrimSpace(fence)}
			case isFence:
				all = append(all, *b)
				b = nil
			case b != nil:
				b.text += l
			}
		}
		require.Nil(t, b, "%s: a block has no end", name)
	}
	return all
}

// of are the blocks of one language.
func of(t *testing.T, lang string) []block {
	t.Helper()
	all := slices.DeleteFunc(blocks(t), func(b block) bool { return b.lang != lang })
	require.NotEmpty(t, all, "blocks in %s", lang)
	return all
}

// Each block has a language that a test of this package compiles, runs or
// parses. Text is what a program has printed, or a formula.
func TestEveryBlockHasALanguage(t *testing.T) {
	for _, b := range blocks(t) {
		switch b.lang {
		case "go", "sh", "yaml", "conf", "redis", "mermaid", "text":
		default:
			t.Errorf("%v: no test knows the language %q", b, b.lang)
		}
	}
}

// A configuration file of a server starts a server, which has these settings
// then.
func TestConfBlocks(t *testing.T) {
	t.Parallel()
	for _, b := range of(t, "conf") {
		var args []string
		want := map[string]string{}
		for line := range strings.Lines(b.text) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), "#"); line == "" {
				continue
			}
			key, value, ok := strings.Cut(line, " ")
			require.True(t, ok, "%v: %s", b, line)
			args = append(args, "--"+key, value)
			want[key] = value
		}
		holds(t, b, redistest.Start(t, 1, redistest.WithArgs(args...)).Node(0), want)
	}
}

// holds checks the settings of a server.
func holds(t *testing.T, b block, s *redistest.Server, want map[string]string) {
	t.Helper()
	require.NotEmpty(t, want, b.String())
	for key, value := range want {
		got, err := s.Client().ConfigGet(t.Context(), key).Result()
		require.NoError(t, err)
		assert.Equal(t, value, got[key], "%v: %s", b, key)
	}
}

// A command for a server is accepted by one.
func TestRedisBlocks(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t, 1).Node(0).Client()
	for _, b := range of(t, "redis") {
		for line := range strings.Lines(b.text) {
			var words []any
			for _, w := range strings.Fields(line) {
				words = append(words, w)
			}
			assert.NoError(t, client.Do(t.Context(), words...).Err(), "%v: %s", b, line)
		}
	}
}

// compose is what a compose file may say here.
type compose struct {
	Services map[string]struct {
		Image, Build string
		Command      string
		Volumes      []string
		Profiles     []string
		Healthcheck  map[string]any
		DependsOn    map[string]map[string]string `yaml:"depends_on"`
	}
	Volumes map[string]any
}

// A compose file has no key that is not known, and names no volume and no
// service that is not there. Its servers start as they are configured, and its
// calls of the command exist.
func TestComposeBlocks(t *testing.T) {
	t.Parallel()
	matrix, err := os.ReadFile(filepath.Join(root, ".github/workflows/test.yml"))
	require.NoError(t, err)
	known := regexp.MustCompile(`^(services|volumes|image|build|command|ports|healthcheck|test|interval|depends_on|condition|profiles|<<|lock-[a-z]+|[a-z])$`)
	for _, b := range of(t, "yaml") {
		for _, key := range regexp.MustCompile(`(?m)^ *([a-z<_-]+):`).FindAllStringSubmatch(b.text, -1) {
			assert.Regexp(t, known, key[1], b.String())
		}
		var c compose
		require.NoError(t, yaml.Unmarshal([]byte(b.text), &c), b.String())
		require.NotEmpty(t, c.Services, b.String())
		for name, s := range c.Services {
			for _, v := range s.Volumes {
				volume, _, _ := strings.Cut(v, ":")
				assert.Contains(t, c.Volumes, volume, "%v: %s", b, name)
			}
			for other, how := range s.DependsOn {
				require.Contains(t, c.Services, other, "%v: %s", b, name)
				assert.Equal(t, "service_healthy", how["condition"])
				assert.NotEmpty(t, c.Services[other].Healthcheck, "%v: %s", b, other)
			}
			if words := strings.Fields(s.Command); words[0] == "redis-server" {
				assert.Contains(t, string(matrix), `"`+s.Image+`"`, "%v: an image that is tested", b)
				want := map[string]string{}
				for i := 1; i < len(words); i += 2 {
					want[strings.TrimPrefix(words[i], "--")] = words[i+1]
				}
				holds(t, b, redistest.Start(t, 1, redistest.WithArgs(words[1:]...)).Node(0), want)
			} else {
				// No registry has an image of the command.
				assert.Empty(t, s.Image, "%v: %s", b, name)
				assert.FileExists(t, filepath.Join(root, s.Build, "Dockerfile"), "%v: %s", b, name)
				assert.NotEmpty(t, s.Build, "%v: %s", b, name)
				flags(t, b.String(), "quorate "+s.Command)
			}
		}
	}
}

// A picture has a kind, and each of its lines the form of that kind.
func TestMermaidBlocks(t *testing.T) {
	kinds := map[string]*regexp.Regexp{
		"flowchart LR": regexp.MustCompile(`^\w+(\[.+\]|\[\(.+\)\])? ((-- .+ -->|-\. .+ \.-) \w+(\[.+\]|\[\(.+\)\])?|--> \w+)$`),
		"sequenceDiagram": regexp.MustCompile(
			`^(participant \w+( as .+)?|\w+(->>|-->>|-x)\w+: .+|Note (over|left of|right of) \w+(,\w+)?: .+)$`),
	}
	for _, b := range of(t, "mermaid") {
		kind, rest, _ := strings.Cut(b.text, "\n")
		require.Contains(t, kinds, kind, b.String())
		for line := range strings.Lines(rest) {
			assert.Regexp(t, kinds[kind], strings.TrimSpace(line), b.String())
		}
	}
}
