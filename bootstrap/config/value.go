package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// byteSize tells a size from a plain number.
type byteSize int64

// parse reads the text of a key as its type asks. Where it cannot, it says what is wrong and what to write.
func (k Key) parse(raw string) (v any, problem, fix string) {
	if k.Secret {
		return NewSecret(raw), "", ""
	}
	switch k.Type {
	case "int":
		n, err := strconv.ParseInt(raw, 10, 64)
		if err != nil {
			return nil, "is not a whole number", "write digits alone, as in " + cmp.Or(k.Default, "10")
		}
		return n, "", ""
	case "bool":
		if raw != "true" && raw != "false" {
			return nil, "is neither true nor false", "write true or false"
		}
		return raw == "true", "", ""
	case "duration":
		d, problem, fix := parseDuration(raw)
		return d, problem, fix
	case "bytes":
		n, problem, fix := parseBytes(raw)
		return byteSize(n), problem, fix
	case "enum":
		if !slices.Contains(k.Values, raw) {
			return nil, "is not one of the values that it may have", "write one of " + strings.Join(k.Values, ", ")
		}
	}
	return raw, "", ""
}

// format is the text that a value is shown as, and that parse reads back as the same value, unless it is a secret.
func format(v any) string {
	switch v := v.(type) {
	case Secret:
		return v.String()
	case time.Duration:
		return formatDuration(v)
	case byteSize:
		return formatBytes(int64(v))
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	}
	return ""
}
