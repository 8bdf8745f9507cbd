// Package canarytest plants a canary in every place that the kit could pick a value, a secret or a host up from, and looks for it in HTTP responses, in
// the log at debug level, in spans and in metrics. It is a module of its own, so that OpenTelemetry's SDK is not the kit's dependency.
package canarytest
