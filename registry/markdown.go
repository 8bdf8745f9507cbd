package registry

import (
	"bytes"
	"strings"
)

func pageHead(source, title string) string {
	return "<!-- Code generated from registry/" + source + " by make generate. DO NOT EDIT. -->\n\n# " + title + "\n\n"
}

// row writes one line of a table; a bar in a cell would start another one.
func row(b *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func codeList(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
