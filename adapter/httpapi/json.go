package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"caskeleton.dev/fault"
)

// maxDepth is how many arrays and objects may be inside one another.
const maxDepth = 32

const decodeOp = "httpapi.Decode"

// noNull refuses null where it would silently become a zero.
var noNull = json.UnmarshalFromFunc(func(d *jsontext.Decoder, v any) error {
	t := reflect.TypeOf(v).Elem()
	if d.PeekKind() != jsontext.KindNull || nullable(t) {
		return errors.ErrUnsupported // leaves the value to the usual rules
	}
	if _, err := d.ReadToken(); err != nil { // so that the error points at the null itself
		return err
	}
	return &json.SemanticError{GoType: t}
})

// Decode reads the one JSON value in body into what v points at. Names are case-sensitive; an absent field leaves what v held.
//
// Refused as [fault.RequestInvalid] with status 400, naming the first field at fault by its path ("items[2].quantity"; "body" for the
// whole), are: an empty body, bad syntax, invalid UTF-8 and unpaired surrogates, data after the value, nesting deeper than 32 levels, a field
// given twice, a field that v does not have, a value of the wrong type or range (null too, unless the field is a pointer, an
// any, or a type that parses itself), and U+0000 in any string, since PostgreSQL's text cannot
// hold it. Rules about values that could be read are not Decode's: report those with [fault.Invalid] (422).
//
// A v that cannot be decoded into is [fault.Internal]. After an error *v may be half filled.
func Decode(body []byte, v any) error {
	if t := reflect.ValueOf(v); t.Kind() != reflect.Pointer || t.IsNil() {
		return fault.New(fault.Internal, decodeOp, fault.Textf("%T is not a pointer to decode into", v))
	}
	if err := scan(body); err != nil {
		return err
	}
	err := json.Unmarshal(body, v, json.RejectUnknownMembers(true), json.WithUnmarshalers(noNull))
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return refuse("body", "could not be read", "check the values against the documentation of this route")
	}
	path := pathOf(body, e.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		return refuse(path, "is not a known field", "remove it, or check its spelling and case")
	}
	want, ok := expected(e.GoType)
	if !ok {
		return fault.New(fault.Internal, decodeOp, fault.Textf("%v cannot hold JSON", e.GoType))
	}
	return refuse(path, "is not "+want, "send "+want)
}

// scan checks all that can be said about body without knowing the type it is for.
func scan(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return refuse("body", "is empty", "send a JSON value")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return syntax(body, d, err)
		}
		if d.StackDepth() > maxDepth {
			return refuse(pathAt(d, d.StackPointer()), fmt.Sprintf("is nested more than %d levels deep", maxDepth), "send a flatter structure")
		}
		if token.Kind() == jsontext.KindString && strings.ContainsRune(token.String(), 0) {
			return refuse(pathAt(d, d.StackPointer()), "holds the character U+0000", "remove that character")
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return refuse("body", "has more data after the JSON value", "send exactly one JSON value")
	}
	return nil
}

func syntax(body []byte, d *jsontext.Decoder, err error) error {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok { // io.EOF: the body ended between two tokens
		return refuse(pathAt(d, d.StackPointer()), "ends too early", "send the whole JSON value")
	}
	path := pathAt(d, e.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return refuse(path, "is given more than once", "send it once")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(path, "ends too early", "send the whole JSON value")
	case readsFurther(body, e.ByteOffset):
		return refuse(path, "is not valid Unicode", "encode text as UTF-8, and write surrogate escapes in pairs")
	}
	return refuse(path, fmt.Sprintf("is not valid JSON, at byte %d of the body", e.ByteOffset), "send well-formed JSON")
}

// readsFurther reports whether body, refused at an offset, would be read past it if text did not have to be valid Unicode.
func readsFurther(body []byte, offset int64) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	for d.InputOffset() <= offset {
		if _, err := d.ReadToken(); err != nil {
			return false
		}
	}
	return true
}

func refuse(path, problem, fix string) error {
	return fault.Malformed(decodeOp, nil, fault.Field{Path: path, Problem: problem, Fix: fix})
}
