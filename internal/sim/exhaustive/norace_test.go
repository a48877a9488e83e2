//go:build !race

package exhaustive

const racing = false
