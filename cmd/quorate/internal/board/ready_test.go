package board_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
)

func TestReady(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "1 of 1 node is ready, 1 is needed", board.Ready(1, 1, 1, 1))
	assert.Equal(t, "3 of 3 nodes are ready, 2 are needed", board.Ready(3, 3, 3, 2))
	assert.Equal(t, "2 of 3 nodes connected, 1 can vote, 2 needed", board.Ready(2, 1, 3, 2))
}
