package natsbroker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
)

// maxVarz bounds what is read of a monitoring answer, which is a few kilobytes.
const maxVarz = 1 << 20

type varz struct {
	ServerID   string `json:"server_id"`
	ServerName string `json:"server_name"`
	JetStream  struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	} `json:"jetstream"`
}

// sync finds out whether the server that stores a stream fsyncs first. why says what is missing where that stays unknown.
func (c *Conn) sync(ctx context.Context, info *jetstream.StreamInfo) (s Sync, why string) {
	if c.opts.Server != nil {
		if c.opts.Server.SyncAlways() {
			return SyncAlways, ""
		}
		return SyncLater, ""
	}
	if c.opts.MonitorURL == "" {
		return SyncUnknown, "no MonitorURL is given"
	}
	v, err := c.varz(ctx)
	switch {
	case err != nil:
		return SyncUnknown, fault.Reason(err)
	case v.JetStream.Config == nil:
		return SyncUnknown, "the monitored server has no JetStream"
	case !stores(v, info, c.nc.ConnectedServerId()):
		return SyncUnknown, "the monitored server is not the one that stores the stream"
	case v.JetStream.Config.SyncAlways:
		return SyncAlways, ""
	}
	return SyncLater, ""
}

// stores reports whether the monitored server is the stream's leader or, outside a cluster, the one that we are connected to.
func stores(v varz, info *jetstream.StreamInfo, connected string) bool {
	if info.Cluster != nil && info.Cluster.Leader != "" {
		return v.ServerName == info.Cluster.Leader
	}
	return v.ServerID == connected
}

// varz asks the monitoring endpoint. Its errors do not hold the URL, which may have a password.
func (c *Conn) varz(ctx context.Context) (v varz, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	target, err := url.JoinPath(c.opts.MonitorURL, "varz")
	if err != nil {
		return v, fault.Text("MonitorURL is no URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return v, fault.Text("MonitorURL is no URL")
	}
	// A transport of its own leaves no idle connection behind.
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			err = withURL.Err
		}
		return v, fault.Textf("the monitoring endpoint does not answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return v, fault.Textf("the monitoring endpoint answers %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVarz)).Decode(&v); err != nil {
		return v, fault.Text("the monitoring endpoint answers something else than NATS does")
	}
	return v, nil
}
