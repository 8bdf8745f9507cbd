package migrations

import (
	"regexp"
	"strings"
)

// splitStatements returns the statements of a script in lower case and single spaces, without comments and with empty literals: enough to
// count them and to see what each one is, and not meant to be run. The body of a BEGIN ATOMIC function counts as several.
func splitStatements(script string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if s := strings.ToLower(strings.Join(strings.Fields(b.String()), " ")); s != "" {
			out = append(out, s)
		}
		b.Reset()
	}
	for len(script) > 0 {
		n, kind := token(script)
		switch kind {
		case tokenEnd:
			flush()
		case tokenComment:
			b.WriteByte(' ')
		case tokenLiteral:
			b.WriteString("''")
		case tokenText:
			b.WriteString(script[:n])
		}
		script = script[n:]
	}
	flush()
	return out
}

// calls returns what of a script runs as it is applied: without comments and literals, other than the body of a DO.
func calls(script string) string {
	var b strings.Builder
	first := "" // word of the statement
	for len(script) > 0 {
		n, kind := token(script)
		text := script[:n]
		switch script = script[n:]; {
		case kind == tokenComment:
			text = " "
		case kind == tokenEnd:
			first = ""
		case kind == tokenText && first == "":
			first = strings.ToLower(strings.TrimSpace(text))
		case kind == tokenLiteral && first != "do":
			text = "''"
		}
		b.WriteString(text)
	}
	return b.String()
}

type tokenKind int

const (
	tokenText tokenKind = iota
	tokenComment
	tokenLiteral
	tokenEnd
)

var (
	dollarTag = regexp.MustCompile(`^\$([A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$`)
	word      = regexp.MustCompile(`^[A-Za-z0-9_\x80-\xff][A-Za-z0-9_$\x80-\xff]*`)
)

// token returns the length and kind of what s begins with. What is unterminated runs to the end.
func token(s string) (int, tokenKind) {
	switch {
	case s[0] == ';':
		return 1, tokenEnd
	case strings.HasPrefix(s, "--"):
		return until(s, "\n", 2), tokenComment
	case strings.HasPrefix(s, "/*"):
		return blockComment(s), tokenComment
	case s[0] == '\'':
		return quoted(s, 0, '\'', false), tokenLiteral
	case (s[0] == 'e' || s[0] == 'E') && len(s) > 1 && s[1] == '\'':
		return quoted(s, 1, '\'', true), tokenLiteral
	case s[0] == '"':
		return quoted(s, 0, '"', false), tokenText
	}
	if tag := dollarTag.FindString(s); tag != "" {
		return until(s, tag, len(tag)), tokenLiteral
	}
	// A whole word at once, so that the $ or e inside a name starts nothing.
	if w := word.FindString(s); w != "" {
		return len(w), tokenText
	}
	return 1, tokenText
}

func until(s, end string, from int) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(s)
}

// blockComment honours nesting, as PostgreSQL does.
func blockComment(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// quoted takes the position of the opening quote. A doubled quote closes and opens again at once, so it needs no care.
func quoted(s string, open int, quote byte, escapes bool) int {
	for i := open + 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}
