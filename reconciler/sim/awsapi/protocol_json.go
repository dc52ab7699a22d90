package awsapi

import (
	"encoding/json"
	"errors"
	"net/http"
)

// The content types of the two versions of AWS JSON; they differ in nothing
// that the endpoint has.
const (
	jsonTen    = "application/x-amz-json-1.0"
	jsonEleven = "application/x-amz-json-1.1"
)

// sendJSON answers with the value as JSON.
func sendJSON(w http.ResponseWriter, contentType string, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"__type":"InternalFailure","message":"the answer is not JSON"}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Amzn-RequestId", requestID)
	w.WriteHeader(status)
	// A client that hung up wants no answer.
	_, _ = w.Write(body)
}

// asAPIError is the error as services answer it; one that is none is a mistake
// of the endpoint.
func asAPIError(err error) *APIError {
	var known *APIError
	if errors.As(err, &known) {
		return known
	}
	return errorf("InternalFailure", "%v", err)
}
