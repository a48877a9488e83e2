//go:build !unix

package main

import "github.com/spf13/cobra"

// guardCommand is empty: there are no process groups here.
func guardCommand() *cobra.Command { return &cobra.Command{Use: "guard-group", Hidden: true} }
