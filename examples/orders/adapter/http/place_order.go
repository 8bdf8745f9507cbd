package http

import (
	"context"
	"net/http"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// maxBody takes the largest order that the domain accepts, several times over.
const maxBody = 64 << 10

// draft is the body of POST /orders.
type draft struct {
	CustomerID string `json:"customer_id"`
	Items      []item `json:"items"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

func decodeDraft(r *httpapi.Request) (any, error) {
	var d draft
	if err := httpapi.Decode(r.Body, &d); err != nil {
		return nil, err
	}
	out := domain.Draft{CustomerID: d.CustomerID, Items: make([]domain.Item, len(d.Items))}
	for i, it := range d.Items {
		out.Items[i] = domain.Item(it)
	}
	return out, out.Validate()
}

func (r Routes) placeOrder(ctx context.Context, t *tx.Tx, req *httpapi.Request) (*httpapi.Response, error) {
	o, err := r.Place.Do(ctx, t, req.Input.(domain.Draft)) //nolint:errcheck,forcetypeassert // what decodeDraft returns
	if err != nil {
		return nil, err
	}
	res, err := httpapi.JSON(http.StatusCreated, viewOf(o))
	if err != nil {
		return nil, err
	}
	res.Header.Set("Location", "/orders/"+o.ID)
	res.Header.Set("ETag", httpapi.ETag(o.Version))
	return res, nil
}
