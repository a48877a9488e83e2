//go:build !unix

package servers

import (
	"math"
	"time"
)

func OwnCPU() time.Duration { return 0 }

func OpenFiles() int { return math.MaxInt32 }
