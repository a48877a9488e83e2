package cli

import (
	"regexp"
	"strings"
)

// This file owns how a message of the library reads at a terminal.

var (
	// settingWithValue is an option with its value, such as WithTTL(8s), and
	// settingAlone one without.
	settingWithValue = regexp.MustCompile(`With(TTL|Guard|Prefix|Skew|Retention|NodeTimeout|MaxHold|Linger|Owner)\(([^()]*)\)`)
	settingAlone     = regexp.MustCompile(`With(TTL|Guard|Prefix|Skew|Retention|NodeTimeout|MaxHold|Linger|Owner|Note)\b`)
	calls            = strings.NewReplacer("ForDevelopment()", "--dev",
		" or call Quorum.Bootstrap once", " once")
)

// flagOf are the flags for options, and what a user calls those that not every
// command has a flag for.
var flagOf = map[string]string{
	"TTL": "--ttl", "Guard": "--guard", "Prefix": "--prefix",
	"Skew": "the skew", "Retention": "--retention", "NodeTimeout": "the node timeout",
	"MaxHold": "the longest hold", "Linger": "the linger", "Owner": "--owner", "Note": "--note",
}

// InFlags names flags and commands where the library names options and calls of
// Go.
func InFlags(text string) string {
	text = calls.Replace(text)
	text = settingWithValue.ReplaceAllStringFunc(text, func(s string) string {
		m := settingWithValue.FindStringSubmatch(s)
		return flagOf[m[1]] + " " + m[2]
	})
	return settingAlone.ReplaceAllStringFunc(text,
		func(s string) string { return flagOf[settingAlone.FindStringSubmatch(s)[1]] })
}
