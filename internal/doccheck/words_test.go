package doccheck

import (
	"regexp"
	"strings"
	"testing"
)

// banned are words that make a sentence hard to read for a person whose first
// language is not English: actors without a name, and old forms.
var banned = regexp.MustCompile(`(?i)\b(unwell|mishaps?|inquiry|inquiries|rubbish|nobody|somebody|everybody|anybody|whoever|anew|for ever|as of this|be it|told of|he|his|him|himself|` +
	`(is|are|was|were|been|be|being|not|gets|get) told)\b`)

// quoted are code and quotations: names of tests and of mutants, log lines.
var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")

// No document has a banned word outside of code and quotations.
func TestWords(t *testing.T) {
	for name, text := range documents(t) {
		code := false
		line := 0
		for l := range strings.Lines(text) {
			line++
			if strings.HasPrefix(l, "```") {
				code = !code
			}
			if code {
				continue
			}
			for _, word := range banned.FindAllString(quoted.ReplaceAllString(l, ""), -1) {
				t.Errorf("%s:%d: %q: name the actor, or use the standard word", name, line, word)
			}
		}
	}
}
