package health_test

import (
	"testing"

	"github.com/quorate/quorate/internal/e2e"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }
