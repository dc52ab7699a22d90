package awsapi

import (
	"encoding/json"
	"net/http"
)

// sendJSON answers with the value as JSON.
func sendJSON(w http.ResponseWriter, contentType string, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"__type":"InternalFailure","message":"the answer is not JSON"}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// A client that hung up wants no answer.
	_, _ = w.Write(body)
}
