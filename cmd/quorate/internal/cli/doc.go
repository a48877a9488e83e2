// Package cli owns what all commands share: the flags and the file that name
// the nodes, the connection to these, how a message of the library reads at a
// terminal, and the statuses to leave with.
package cli
