package httpapi

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPathName is how much of a name that the caller made up is repeated, in bytes.
const maxPathName = 64

// pathOf turns a pointer into a well-formed body into a path.
func pathOf(body []byte, p jsontext.Pointer) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for p != "" {
		if _, err := d.ReadToken(); err != nil {
			break
		}
		if d.StackPointer() == p {
			return pathAt(d, p)
		}
	}
	return "body"
}

// pathAt turns a pointer to where d stands into a path: "items[2].quantity". d's stack tells indexes from names made of digits.
func pathAt(d *jsontext.Decoder, p jsontext.Pointer) string {
	var path strings.Builder
	level := 0
	for token := range p.Tokens() {
		level++
		kind := jsontext.KindBeginObject
		if level <= d.StackDepth() {
			kind, _ = d.StackIndex(level)
		}
		switch {
		case kind == jsontext.KindBeginArray:
			path.WriteString("[" + token + "]")
		case !plainName(token):
			path.WriteString("[" + quoteName(token) + "]")
		case level > 1:
			path.WriteString("." + token)
		default:
			path.WriteString(token)
		}
	}
	if level == 0 {
		return "body"
	}
	return path.String()
}

func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '$' {
			return false
		}
	}
	return name != "" && len(name) <= maxPathName
}

func quoteName(name string) string {
	if len(name) > maxPathName {
		end := maxPathName
		for !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end] + "…"
	}
	quoted, _ := jsontext.AppendQuote(nil, name) // the error is invalid UTF-8, which quoted holds replaced
	return string(quoted)
}
