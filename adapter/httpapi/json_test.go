package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

// everything has a field of each kind that Decode must describe.
type everything struct {
	Text   string          `json:"text"`
	Flag   bool            `json:"flag"`
	Small  uint8           `json:"small"`
	Big    int64           `json:"big"`
	Ratio  float64         `json:"ratio"`
	Ratio4 float32         `json:"ratio4"`
	At     time.Time       `json:"at"`
	Raw    []byte          `json:"raw"`
	Hash   [4]byte         `json:"hash"`
	Pair   [2]int          `json:"pair"`
	List   []string        `json:"list"`
	Map    map[string]bool `json:"map"`
	Any    any             `json:"any"`
	Maybe  *int            `json:"maybe"`
	Color  color           `json:"color"`
}

type color struct{ name string }

func (c *color) UnmarshalText(b []byte) error {
	if string(b) != "red" {
		return fault.NotFound
	}
	c.name = string(b)
	return nil
}

func TestDecodeAccepts(t *testing.T) {
	var got everything
	require.NoError(t, httpapi.Decode([]byte(` {"text":"\ud83d\ude00\ufffd","flag":true,"small":255,"big":-9223372036854775808,"ratio":1e3,
		"ratio4":1,"at":"2026-01-31T15:04:05Z","raw":"AQI=","hash":"AQIDBA==","pair":[1,2],"list":["a"],"map":{"1":true},"any":null,"maybe":null,"color":"red"} `), &got))
	want := everything{
		Text: "😀\ufffd", Flag: true, Small: 255, Big: -9223372036854775808, Ratio: 1000, Ratio4: 1, At: time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC),
		Raw: []byte{1, 2}, Hash: [4]byte{1, 2, 3, 4}, Pair: [2]int{1, 2}, List: []string{"a"}, Map: map[string]bool{"1": true}, Color: color{"red"},
	}
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(color{})))

	var deep any
	require.NoError(t, httpapi.Decode([]byte(strings.Repeat("[", 32)+strings.Repeat("]", 32)), &deep))
}

func TestDecodeExplains(t *testing.T) {
	for body, want := range map[string]fault.Field{
		`{"text":1}`:                  {Path: "text", Problem: "is not a string", Fix: "send a string"},
		`{"flag":"true"}`:             {Path: "flag", Problem: "is not true or false", Fix: "send true or false"},
		`{"small":256}`:               {Path: "small", Problem: "is not a whole number between 0 and 255", Fix: "send a whole number between 0 and 255"},
		`{"big":9223372036854775808}`: {Path: "big", Problem: "is not a whole number between -9223372036854775808 and 9223372036854775807", Fix: "send a whole number between -9223372036854775808 and 9223372036854775807"},
		`{"ratio":1e999}`:             {Path: "ratio", Problem: "is not a number between -1.7e308 and 1.7e308", Fix: "send a number between -1.7e308 and 1.7e308"},
		`{"ratio4":1e39}`:             {Path: "ratio4", Problem: "is not a number between -3.4e38 and 3.4e38", Fix: "send a number between -3.4e38 and 3.4e38"},
		`{"any":1e999}`:               {Path: "any", Problem: "is not a number between -1.7e308 and 1.7e308", Fix: "send a number between -1.7e308 and 1.7e308"},
		`{"at":"yesterday"}`:          {Path: "at", Problem: "is not a date and time such as 2026-01-31T15:04:05Z", Fix: "send a date and time such as 2026-01-31T15:04:05Z"},
		`{"raw":"!"}`:                 {Path: "raw", Problem: "is not a base64 string", Fix: "send a base64 string"},
		`{"hash":"AQ=="}`:             {Path: "hash", Problem: "is not a base64 string of 4 bytes", Fix: "send a base64 string of 4 bytes"},
		`{"pair":[1]}`:                {Path: "pair", Problem: "is not an array of 2 values", Fix: "send an array of 2 values"},
		`{"list":{}}`:                 {Path: "list", Problem: "is not an array", Fix: "send an array"},
		`{"list":["a",null]}`:         {Path: "list[1]", Problem: "is not a string", Fix: "send a string"},
		`{"map":[]}`:                  {Path: "map", Problem: "is not an object", Fix: "send an object"},
		`{"map":{"7":1}}`:             {Path: "map.7", Problem: "is not true or false", Fix: "send true or false"},
		`{"maybe":"1"}`:               {Path: "maybe", Problem: "is not a whole number between -9223372036854775808 and 9223372036854775807", Fix: "send a whole number between -9223372036854775808 and 9223372036854775807"},
		`{"color":"blue"}`:            {Path: "color", Problem: "is not a value in the format of this field", Fix: "send a value in the format of this field"},
		`{"at":null}`:                 {Path: "at", Problem: "is not a date and time such as 2026-01-31T15:04:05Z", Fix: "send a date and time such as 2026-01-31T15:04:05Z"},
		`[]`:                          {Path: "body", Problem: "is not an object", Fix: "send an object"},
		`{"Text":"a"}`:                {Path: "Text", Problem: "is not a known field", Fix: "remove it, or check its spelling and case"},
		`{"any":{"a":1,"a":2}}`:       {Path: "any.a", Problem: "is given more than once", Fix: "send it once"},
		`{"any":["a",{"b\u0000":1}]}`: {Path: `any[1]["b\u0000"]`, Problem: "holds the character U+0000", Fix: "remove that character"},
		`{"any":["\u0000"]}`:          {Path: "any[0]", Problem: "holds the character U+0000", Fix: "remove that character"},
		`{"any":"\udc00"}`:            {Path: "any", Problem: "is not valid Unicode", Fix: "encode text as UTF-8, and write surrogate escapes in pairs"},
		"{\"\xff\":1}":                {Path: "body", Problem: "is not valid Unicode", Fix: "encode text as UTF-8, and write surrogate escapes in pairs"},
		`{"any":[1,tru]}`:             {Path: "any[1]", Problem: "is not valid JSON, at byte 13 of the body", Fix: "send well-formed JSON"},
		`{a:1}`:                       {Path: "body", Problem: "is not valid JSON, at byte 1 of the body", Fix: "send well-formed JSON"},
		`{"any":[1,`:                  {Path: "any", Problem: "ends too early", Fix: "send the whole JSON value"},
		`{"any":{"b":"c`:              {Path: "any.b", Problem: "ends too early", Fix: "send the whole JSON value"},
		`{"a.b":1}`:                   {Path: `["a.b"]`, Problem: "is not a known field", Fix: "remove it, or check its spelling and case"},
		`{} {}`:                       {Path: "body", Problem: "has more data after the JSON value", Fix: "send exactly one JSON value"},
		"\t":                          {Path: "body", Problem: "is empty", Fix: "send a JSON value"},
	} {
		var v everything
		err := httpapi.Decode([]byte(body), &v)
		require.ErrorIs(t, err, fault.RequestInvalid, body)
		require.Equal(t, 400, fault.StatusOf(err), body)
		require.Empty(t, cmp.Diff([]fault.Field{want}, fault.FieldsOf(err)), body)
	}
}

func TestDecodeShortensMadeUpNames(t *testing.T) {
	var v everything
	err := httpapi.Decode([]byte(`{"x`+strings.Repeat("é", 40)+`":1}`), &v)
	require.Equal(t, `["x`+strings.Repeat("é", 31)+`…"]`, fault.FieldsOf(err)[0].Path)
}

func TestDecodeTargetsOfOurs(t *testing.T) {
	var none *everything
	for name, v := range map[string]any{
		"nil":       nil,
		"nil ptr":   none,
		"no ptr":    everything{},
		"channel":   new(chan int),
		"interface": new(error),
	} {
		err := httpapi.Decode([]byte(`{"text":"c4nary"}`), v)
		require.ErrorIs(t, err, fault.Internal, name)
		require.Empty(t, fault.FieldsOf(err), name)
		require.NotContains(t, err.Error(), "c4nary", name)
	}
}
