package awsapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"syscall"
)

// HTTPClient reaches the endpoint without a socket, whatever host is asked for:
// it is to be the HTTPClient of an aws.Config.
func (e *Endpoint) HTTPClient() *http.Client { return &http.Client{Transport: transport{e}} }

// transport calls a handler as if it were far away.
type transport struct{ handler http.Handler }

// RoundTrip answers in the caller's goroutine. A handler that aborts after a
// part of the answer gives that part and then an error, as a socket does.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer func() { _ = in.Body.Close() }()
	answer := newRecorder()
	aborted := answer.run(t.handler, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if aborted && answer.body.Len() == 0 {
		return nil, fmt.Errorf("read answer: %w", syscall.ECONNRESET)
	}
	return answer.response(r, aborted), nil
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

// Header is the header of the answer.
func (a *recorder) Header() http.Header { return a.header }

// WriteHeader sets the status; the first one counts.
func (a *recorder) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write adds to the body.
func (a *recorder) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// run says whether the handler aborted the connection.
func (a *recorder) run(h http.Handler, r *http.Request) (aborted bool) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			aborted = true
		}
	}()
	h.ServeHTTP(a, r)
	return false
}

// copyTo writes the head and the first n bytes of the body. The announced
// length is that of the whole.
func (a *recorder) copyTo(w http.ResponseWriter, n int) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	w.WriteHeader(max(a.status, http.StatusOK))
	// A client that went away needs no answer.
	_, _ = w.Write(a.body.Bytes()[:n])
}

func (a *recorder) response(r *http.Request, aborted bool) *http.Response {
	status := max(a.status, http.StatusOK)
	var body io.Reader = bytes.NewReader(a.body.Bytes())
	if aborted {
		body = io.MultiReader(body, broken{})
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(body), ContentLength: length(a.header, a.body.Len()), Request: r,
	}
}

func length(h http.Header, have int) int64 {
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return int64(have)
}

// broken is the end of an answer whose connection broke.
type broken struct{}

// Read fails.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
