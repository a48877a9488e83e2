//go:build !unix

package child

import "github.com/spf13/cobra"

// GuardCommands is empty: there are no process groups here.
func GuardCommands() []*cobra.Command { return nil }
