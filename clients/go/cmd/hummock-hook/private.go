package main

import (
	"regexp"
	"strings"
)

var privateTag = regexp.MustCompile(`(?i)<(/?)private(?:[ \t\r\n][^<>]*)?>`)

// withoutPrivate is the text without what stands in <private>, and without white space around it. Tags may be nested,
// and one that is not closed reaches to the end.
func withoutPrivate(text string) string {
	var kept strings.Builder
	depth, start := 0, 0
	for _, at := range privateTag.FindAllStringSubmatchIndex(text, -1) {
		isEnd := at[3] > at[2]
		if isEnd && depth == 0 {
			continue
		}
		if depth == 0 {
			kept.WriteString(text[start:at[0]])
		}
		if isEnd {
			depth--
		} else {
			depth++
		}
		start = at[1]
	}
	if depth == 0 {
		kept.WriteString(text[start:])
	}
	return strings.TrimSpace(kept.String())
}
