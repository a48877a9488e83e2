//go:build !unix

package main

import "github.com/spf13/cobra"

// guardCommands is empty: there are no process groups here.
func guardCommands() []*cobra.Command { return nil }
