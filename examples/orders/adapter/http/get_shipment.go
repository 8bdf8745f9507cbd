package http

import (
	"net/http"
	"time"

	"caskeleton.dev/adapter/httpapi"
)

// shipment is a shipment as clients see it.
type shipment struct {
	ID        string    `json:"id"`
	OrderID   string    `json:"order_id"`
	CreatedAt time.Time `json:"created_at"`
}

func (r Routes) getShipment(w http.ResponseWriter, req *http.Request) error {
	s, err := r.Shipment.Do(req.Context(), req.PathValue("order_id"))
	if err != nil {
		return err
	}
	res, err := httpapi.JSON(http.StatusOK, shipment{ID: s.ID, OrderID: s.OrderID, CreatedAt: s.CreatedAt.UTC()})
	if err != nil {
		return err
	}
	res.Write(w, req)
	return nil
}
