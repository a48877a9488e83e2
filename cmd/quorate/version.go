package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionCommand prints which build this is, for reports of faults.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of quorate and Go",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "quorate", buildVersion())
			return nil
		},
	}
}

// buildVersion is the module version, the Go version and platform, and where
// the build was made from a checkout, its revision.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(no build information)"
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	text := fmt.Sprintf("%s %s %s/%s", version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		text += fmt.Sprintf(" revision %.12s of %s", revision, settings["vcs.time"])
		if settings["vcs.modified"] == "true" {
			text += ", with changes"
		}
	}
	return text
}
