//go:build race

package period

func init() { sparse = 11 }
