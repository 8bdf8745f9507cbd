package http

import (
	"net/http"

	"caskeleton.dev/adapter/httpapi"
)

func (r Routes) cancelOrder(w http.ResponseWriter, req *http.Request) error {
	match, err := httpapi.RequireIfMatch(req)
	if err != nil {
		return err
	}
	o, err := r.Cancel.Do(req.Context(), req.PathValue("id"), match.Check)
	if err != nil {
		return err
	}
	return answerOrder(w, req, o)
}
