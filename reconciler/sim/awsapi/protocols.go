package awsapi

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// requestID stands in every answer: nothing depends on it, and it must not
// differ between runs.
const requestID = "00000000-0000-4000-8000-000000000000"

// jsonService is a service that speaks AWS JSON 1.0 or 1.1.
func jsonService(h http.Handler) service {
	return service{action: jsonAction, fail: failJSON, handler: h}
}

// jsonAction is the last part of "AmazonSSM.GetParameter".
func jsonAction(r *http.Request, _ []byte) string {
	target := r.Header.Get("X-Amz-Target")
	return target[strings.LastIndex(target, ".")+1:]
}

// failJSON answers an error of a JSON service.
func failJSON(w http.ResponseWriter, err *APIError) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-ErrorType", err.Code)
	w.Header().Set("X-Amzn-RequestId", requestID)
	w.WriteHeader(err.status())
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": err.Code, "message": err.Message})
}

// queryService is a service that speaks AWS query, as IAM does.
func queryService(h http.Handler) service {
	return service{action: formAction, fail: failQuery, handler: h}
}

// formAction is the Action of a form.
func formAction(_ *http.Request, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	return form.Get("Action")
}

// failQuery answers an error of an AWS query service.
func failQuery(w http.ResponseWriter, err *APIError) {
	writeXML(w, err.status(), fmt.Sprintf("<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
		escape(err.Code), escape(err.Message), requestID))
}

// failEC2 answers an error of EC2, whose errors have a shape of their own.
func failEC2(w http.ResponseWriter, err *APIError) {
	writeXML(w, err.status(), fmt.Sprintf("<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
		escape(err.Code), escape(err.Message), requestID))
}

func writeXML(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, xml.Header, body)
}

// escape makes text fit for XML.
func escape(s string) string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
