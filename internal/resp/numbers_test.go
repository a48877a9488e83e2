package resp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/resp"
)

func TestNumbers(t *testing.T) {
	text := func(s string) []resp.Value { return []resp.Value{{Str: []byte(s)}} }
	var room [3]resp.Value
	assert.Equal(t, []resp.Value{{Int: 7}}, resp.Numbers(room[:], text("7")))
	assert.Equal(t, []resp.Value{{Int: 1 << 62}, {Int: 0}, {Int: -3}},
		resp.Numbers(room[:], text("4611686018427387904 0 -3")))
	for _, s := range []string{"", " ", "1 ", " 1", "1  2", "1\t2", "1 two", "1 2 3 4", "99999999999999999999"} {
		assert.Equal(t, text(s), resp.Numbers(room[:], text(s)), "%q", s)
	}
	for _, v := range [][]resp.Value{nil, {{}}, {{Int: 5}}, {{Str: []byte("1")}, {Str: []byte("2")}}} {
		assert.Equal(t, v, resp.Numbers(room[:], v))
	}
}
