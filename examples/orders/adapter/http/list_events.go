package http

import (
	"encoding/json"
	"net/http"
	"time"

	"caskeleton.dev/adapter/httpapi"
)

// event is an event as clients see it.
type event struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Sequence   int64           `json:"sequence"`
	OccurredAt time.Time       `json:"occurred_at"`
	Data       json.RawMessage `json:"data"`
}

func (r Routes) listEvents(w http.ResponseWriter, req *http.Request) error {
	all, err := r.ListEvents.Do(req.Context(), req.PathValue("id"))
	if err != nil {
		return err
	}
	events := make([]event, len(all))
	for i, e := range all {
		events[i] = event{ID: e.ID, Type: e.Type, Sequence: e.Sequence, OccurredAt: e.OccurredAt.UTC(), Data: e.Payload}
	}
	res, err := httpapi.JSON(http.StatusOK, map[string][]event{"events": events})
	if err != nil {
		return err
	}
	res.Write(w, req)
	return nil
}
