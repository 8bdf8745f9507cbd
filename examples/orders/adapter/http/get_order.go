package http

import (
	"net/http"
	"time"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/examples/orders/domain"
)

// view is an order as clients see it.
type view struct {
	ID         string    `json:"id"`
	Status     string    `json:"status"`
	CustomerID string    `json:"customer_id"`
	Items      []item    `json:"items"`
	TotalCents int64     `json:"total_cents"`
	Version    int64     `json:"version"`
	CreatedAt  time.Time `json:"created_at"`
}

func viewOf(o domain.Order) view {
	v := view{
		ID: o.ID, Status: string(o.Status), CustomerID: o.CustomerID, Items: make([]item, len(o.Items)),
		TotalCents: o.TotalCents, Version: o.Version, CreatedAt: o.CreatedAt.UTC(),
	}
	for i, it := range o.Items {
		v.Items[i] = item(it)
	}
	return v
}

func (r Routes) getOrder(w http.ResponseWriter, req *http.Request) error {
	o, err := r.Get.Do(req.Context(), req.PathValue("id"))
	if err != nil {
		return err
	}
	return answerOrder(w, req, o)
}

func answerOrder(w http.ResponseWriter, req *http.Request, o domain.Order) error {
	res, err := httpapi.JSON(http.StatusOK, viewOf(o))
	if err != nil {
		return err
	}
	res.Header.Set("ETag", httpapi.ETag(o.Version))
	res.Write(w, req)
	return nil
}
