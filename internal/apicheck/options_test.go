package apicheck

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An option compiles where it applies, and nowhere else. In testdata/options.go
// each line that must not compile ends in a comment: // wrong.
func TestOptionsCompileWhereTheyApply(t *testing.T) {
	name := filepath.Join("testdata", "options.go")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	file, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	refused := map[int]string{}
	conf := types.Config{Importer: compiled(), Error: func(err error) {
		e, ok := errors.AsType[types.Error](err)
		require.True(t, ok)
		refused[positions.Position(e.Pos).Line] += e.Msg + "\n"
	}}
	_, _ = conf.Check("options", positions, []*ast.File{file}, nil) // Error has all errors
	wrong := 0
	for i, line := range strings.Split(string(text), "\n") {
		why, isRefused := refused[i+1]
		if !strings.HasSuffix(line, "// wrong") {
			assert.False(t, isRefused, "line %d must compile: %s\n%s", i+1, line, why)
			continue
		}
		wrong++
		assert.True(t, isRefused, "line %d must not compile: %s", i+1, line)
		assert.Contains(t, why, "does not implement", "line %d: %s", i+1, line)
	}
	assert.Greater(t, wrong, 20)
}
