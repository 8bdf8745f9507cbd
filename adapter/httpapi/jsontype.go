package httpapi

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
)

var timeType = reflect.TypeFor[time.Time]()

// nullable reports whether t can tell null from every other value.
func nullable(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.Pointer || k == reflect.Interface || t != timeType && parsesItself(t)
}

// expected says in words of JSON what a Go type takes; ok is false for a type that takes nothing.
func expected(t reflect.Type) (words string, ok bool) {
	if t == nil {
		return "", false
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == timeType {
		return "a date and time such as 2026-01-31T15:04:05Z", true
	}
	if parsesItself(t) {
		return "a value in the format of this field", true
	}
	switch k := t.Kind(); k {
	case reflect.Bool:
		return "true or false", true
	case reflect.String:
		return "a string", true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		lowest := int64(math.MinInt64) >> (64 - t.Bits())
		return fmt.Sprintf("a whole number between %d and %d", lowest, -(lowest + 1)), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number between 0 and %d", uint64(math.MaxUint64)>>(64-t.Bits())), true
	case reflect.Float32:
		return "a number between -3.4e38 and 3.4e38", true
	case reflect.Float64, reflect.Interface: // any holds each JSON value but a number too large for a float64
		return "a number between -1.7e308 and 1.7e308", k == reflect.Float64 || t.NumMethod() == 0
	case reflect.Slice, reflect.Array:
		return list(t), true
	case reflect.Struct, reflect.Map:
		return "an object", true
	}
	return "", false
}

func list(t reflect.Type) string {
	fixed := t.Kind() == reflect.Array
	switch bytes := t.Elem().Kind() == reflect.Uint8; {
	case bytes && fixed:
		return fmt.Sprintf("a base64 string of %d bytes", t.Len())
	case bytes:
		return "a base64 string"
	case fixed:
		return fmt.Sprintf("an array of %d values", t.Len())
	}
	return "an array"
}

func parsesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) ||
		p.Implements(reflect.TypeFor[stdjson.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
