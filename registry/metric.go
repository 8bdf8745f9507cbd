package registry

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Metric is one entry of metrics.yaml: an OpenTelemetry instrument that the kit records.
type Metric struct {
	Name   string   // lower.case with dots
	Type   string   // counter, updowncounter, gauge or histogram
	Unit   string   // UCUM, as OpenTelemetry wants it: s, By, or {things}
	Labels []string // attribute keys; each has few values, which Doc lists
	Doc    string
}

var (
	metricName  = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)
	metricTypes = []string{"counter", "updowncounter", "gauge", "histogram"}
	metricUnit  = regexp.MustCompile(`^([A-Za-z0-9%/]+|\{[a-z_]+\})$`)
	metricLabel = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

func checkMetrics(metrics []Metric) []error {
	var p problems
	for i, m := range metrics {
		entry := m.Name
		if !metricName.MatchString(m.Name) {
			entry = fmt.Sprintf("entry %d", i+1)
			p.addf(entry, "name %q is not lower case words joined by dots", m.Name)
		}
		p.once(entry, "name", m.Name)
		if !slices.Contains(metricTypes, m.Type) {
			p.addf(entry, "type %q is not one of %s", m.Type, strings.Join(metricTypes, ", "))
		}
		if !metricUnit.MatchString(m.Unit) {
			p.addf(entry, "unit %q is not a UCUM unit such as s, By or {connection}", m.Unit)
		}
		for j, l := range m.Labels {
			if !metricLabel.MatchString(l) || slices.Contains(m.Labels[:j], l) {
				p.addf(entry, "label %q is not snake_case, or is named twice", l)
			}
		}
		p.sentence(entry, "doc", m.Doc)
	}
	return p.list
}

func metricsPage(metrics []Metric) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead("metrics.yaml", "Metrics") + `Every instrument that the kit records; a test fails when the source has one that is not listed here, or lacks one that is.

| metric | type | unit | labels | meaning |
|---|---|---|---|---|
`)
	for _, m := range metrics {
		row(&b, "`"+m.Name+"`", m.Type, "`"+m.Unit+"`", codeList(m.Labels), m.Doc)
	}
	return b.Bytes()
}
