package awsapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// maxParameters is how many parameters GetParameters takes.
const maxParameters = 10

// ssmService answers the JSON 1.1 protocol of SSM for reading parameters.
type ssmService struct {
	clock           *sim.Clock
	account, region string
	// mu is the endpoint's; it guards the clock and what follows.
	mu sync.Locker
	// public looks up the parameters that AWS publishes.
	public func(name string) (value string, ok bool)
	own    map[string]*storedParameter
	opened time.Time
}

// storedParameter is one that was put into the account.
type storedParameter struct {
	value    string
	version  int64
	modified time.Time
}

func newSSM(clock *sim.Clock, mu sync.Locker, region, account string, public func(string) (string, bool)) *ssmService {
	return &ssmService{clock: clock, mu: mu, region: region, account: account, public: public, own: map[string]*storedParameter{}, opened: clock.Now()}
}

// put adds a parameter or gives it a new version.
func (s *ssmService) put(name, value string) {
	version := int64(1)
	if p, ok := s.own[name]; ok {
		version = p.version + 1
	}
	s.own[name] = &storedParameter{value: value, version: version, modified: s.clock.Now()}
}

// ServeHTTP answers one request.
func (s *ssmService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		failJSON(w, errorf("SerializationException", "read request: %v", err))
		return
	}
	var in struct {
		Name  string
		Names []string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		failJSON(w, errorf("SerializationException", "%v", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch action := jsonAction(r, nil); action {
	case "GetParameter":
		p, ok := s.get(in.Name)
		if !ok {
			// SSM sends no message, only the code.
			failJSON(w, errorf("ParameterNotFound", ""))
			return
		}
		sendJSON(w, jsonEleven, http.StatusOK, map[string]any{"Parameter": p})
	case "GetParameters":
		s.getAll(w, in.Names)
	default:
		failJSON(w, errorf("UnknownOperationException", "The simulation has no action %q of SSM.", action))
	}
}

// wireParameter is a parameter as SSM writes it; the time is in seconds.
type wireParameter struct {
	ARN              string
	DataType         string
	LastModifiedDate int64
	Name             string
	Type             string
	Value            string
	Version          int64
}

// get finds a parameter by its name or its ARN.
func (s *ssmService) get(name string) (wireParameter, bool) {
	if _, rest, ok := strings.Cut(name, ":parameter/"); ok && strings.HasPrefix(name, "arn:") {
		name = "/" + rest
	}
	out := wireParameter{DataType: "text", Name: name, Type: "String", Version: 1, LastModifiedDate: s.opened.Unix()}
	owner := ""
	if p, ok := s.own[name]; ok {
		out.Value, out.Version, out.LastModifiedDate, owner = p.value, p.version, p.modified.Unix(), s.account
	} else if out.Value, ok = s.public(name); !ok {
		return wireParameter{}, false
	}
	out.ARN = "arn:aws:ssm:" + s.region + ":" + owner + ":parameter/" + strings.TrimPrefix(name, "/")
	return out, true
}

func (s *ssmService) getAll(w http.ResponseWriter, names []string) {
	if len(names) == 0 || len(names) > maxParameters {
		failJSON(w, errorf("ValidationException", "Value at 'names' failed to satisfy constraint: between 1 and %d names.", maxParameters))
		return
	}
	found, unknown := []wireParameter{}, []string{}
	for _, name := range names {
		if p, ok := s.get(name); ok {
			found = append(found, p)
		} else {
			unknown = append(unknown, name)
		}
	}
	sendJSON(w, jsonEleven, http.StatusOK, map[string]any{"Parameters": found, "InvalidParameters": unknown})
}
