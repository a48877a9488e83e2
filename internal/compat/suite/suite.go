// Package suite names what the acceptance suite consists of: the test that runs
// it and the command that starts the test have these names in common.
package suite

// Variable is the environment variable that has the test run.
const Variable = "QUORATE_COMPAT"

// The parts of the suite, in the order of the table. Each is run on one server
// alone and on three.
const (
	Use      = "use"
	Rights   = "rights"
	TLS      = "TLS"
	Restarts = "restarts"
	Full     = "maxmemory"
	Cluster  = "cluster"
)

// Parts are all of them.
var Parts = []string{Use, Rights, TLS, Restarts, Full, Cluster}
