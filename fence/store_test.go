package fence_test

import (
	"testing"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	var m fence.Memory
	suite.Store(t, func() fence.Store { return &m })
}
