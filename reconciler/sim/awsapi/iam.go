package awsapi

import (
	"cmp"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// InstanceProfile is one of IAM's, as tests see it.
type InstanceProfile struct {
	// Name of the profile, unique in the account.
	Name string
	// Path is "/" or "/karpenter/<region>/<cluster>/<uid>/".
	Path string
	// Role is the name of its role, "" for none.
	Role string
	// Created is when.
	Created time.Time
	// Tags of the profile.
	Tags map[string]string
}

// profile is an instance profile; seeded ones were there before any client.
type profile struct {
	InstanceProfile
	seeded bool
}

// iamService answers the query protocol of IAM for what a controller of nodes
// needs of it: instance profiles, and roles that exist.
type iamService struct {
	clock   *sim.Clock
	account string
	// mu is the endpoint's; it guards the clock and what follows.
	mu       sync.Locker
	profiles map[string]*profile
	roles    map[string]time.Time
}

func newIAM(clock *sim.Clock, mu sync.Locker, account string) *iamService {
	return &iamService{clock: clock, mu: mu, account: account, profiles: map[string]*profile{}, roles: map[string]time.Time{}}
}

// putRole adds a role.
func (s *iamService) putRole(name string) { s.roles[name] = s.clock.Now() }

// list is all profiles, by name.
func (s *iamService) list() []InstanceProfile {
	out := make([]InstanceProfile, 0, len(s.profiles))
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		p := s.profiles[name].InstanceProfile
		p.Tags = maps.Clone(p.Tags)
		out = append(out, p)
	}
	return out
}

// iamAction returns the result of an action, nil if it has none.
type iamAction func(*iamService, iamRequest) (any, error)

var iamActions = map[string]iamAction{
	"AddRoleToInstanceProfile":      (*iamService).addRole,
	"CreateInstanceProfile":         (*iamService).createProfile,
	"DeleteInstanceProfile":         (*iamService).deleteProfile,
	"GetInstanceProfile":            (*iamService).getProfile,
	"GetRole":                       (*iamService).getRole,
	"ListInstanceProfileTags":       (*iamService).listTags,
	"ListInstanceProfiles":          (*iamService).listProfiles,
	"RemoveRoleFromInstanceProfile": (*iamService).removeRole,
	"TagInstanceProfile":            (*iamService).tagProfile,
	"UntagInstanceProfile":          (*iamService).untagProfile,
}

// ServeHTTP answers one request.
func (s *iamService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		failQuery(w, errorf("MalformedInput", "read request: %v", err))
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		failQuery(w, errorf("MalformedInput", "read request: %v", err))
		return
	}
	action := form.Get("Action")
	f, ok := iamActions[action]
	if !ok {
		failQuery(w, errorf("InvalidAction", "Could not find operation %s for version 2010-05-08: the simulation has no such action.", action))
		return
	}
	s.mu.Lock()
	result, err := f(s, iamRequest{form})
	s.mu.Unlock()
	if err != nil {
		failQuery(w, asAPIError(err))
		return
	}
	answerIAM(w, action, result)
}

// answerIAM wraps the result as IAM does.
func answerIAM(w http.ResponseWriter, action string, result any) {
	var b strings.Builder
	b.WriteString("<" + action + `Response xmlns="https://iam.amazonaws.com/doc/2010-05-08/">`)
	if result != nil {
		encoder := xml.NewEncoder(&b)
		if err := encoder.EncodeElement(result, xml.StartElement{Name: xml.Name{Local: action + "Result"}}); err != nil {
			failQuery(w, errorf("InternalFailure", "%v", err))
			return
		}
	}
	b.WriteString("<ResponseMetadata><RequestId>" + requestID + "</RequestId></ResponseMetadata></" + action + "Response>")
	writeXML(w, http.StatusOK, b.String())
}

var (
	iamName = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
	iamPath = regexp.MustCompile(`^/$|^/[!-~]{0,510}/$`)
)

// roleNamed is a role that exists. Controllers tell a missing role from a
// missing profile by the word "role".
func (s *iamService) roleNamed(name string) (xmlRole, error) {
	created, ok := s.roles[name]
	if !ok {
		return xmlRole{}, errorf("NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	return xmlRole{
		Path: "/", RoleName: name, RoleID: iamID("AROA", s.account, "role", name), Arn: "arn:aws:iam::" + s.account + ":role/" + name,
		CreateDate: created.Format(time.RFC3339), AssumeRolePolicyDocument: trustPolicy,
	}, nil
}

// trustPolicy lets EC2 take the role; IAM sends it URL-encoded.
var trustPolicy = url.QueryEscape(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)

func (s *iamService) profileNamed(in iamRequest) (*profile, error) {
	name := in.Get("InstanceProfileName")
	if !iamName.MatchString(name) {
		return nil, errorf("ValidationError", "The specified value for instanceProfileName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	p, ok := s.profiles[name]
	if !ok {
		return nil, errorf("NoSuchEntity", "Instance Profile %s cannot be found.", name)
	}
	return p, nil
}

func (s *iamService) createProfile(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	known := asAPIError(err)
	switch {
	case err == nil:
		return nil, errorf("EntityAlreadyExists", "Instance Profile %s already exists.", p.Name)
	case known.Code != "NoSuchEntity":
		return nil, err
	}
	path := cmp.Or(in.Get("Path"), "/")
	if !iamPath.MatchString(path) {
		return nil, errorf("ValidationError", "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.")
	}
	p = &profile{InstanceProfile: InstanceProfile{Name: in.Get("InstanceProfileName"), Path: path, Created: s.clock.Now(), Tags: map[string]string{}}}
	if err := p.tag(in.tags()); err != nil {
		return nil, err
	}
	s.profiles[p.Name] = p
	return s.profileResult(p), nil
}

func (s *iamService) getProfile(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	return s.profileResult(p), nil
}

func (s *iamService) deleteProfile(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, errorf("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(s.profiles, p.Name)
	return nil, nil
}

func (s *iamService) addRole(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	role, err := s.roleNamed(in.Get("RoleName"))
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, errorf("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role = role.RoleName
	return nil, nil
}

func (s *iamService) removeRole(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	name := in.Get("RoleName")
	if p.Role != name || name == "" {
		return nil, errorf("NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	p.Role = ""
	return nil, nil
}

func (s *iamService) getRole(in iamRequest) (any, error) {
	role, err := s.roleNamed(in.Get("RoleName"))
	if err != nil {
		return nil, err
	}
	return struct{ Role xmlRole }{role}, nil
}

func (s *iamService) tagProfile(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	return nil, p.tag(in.tags())
}

func (s *iamService) untagProfile(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	for _, key := range in.list("TagKeys") {
		delete(p.Tags, key)
	}
	return nil, nil
}

// tag adds the tags, all or none.
func (p *profile) tag(tags map[string]string) error {
	all := maps.Clone(p.Tags)
	maps.Copy(all, tags)
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			return errorf("InvalidInput", "Tag keys that start with aws: are reserved: %s", key)
		}
	}
	if len(all) > maxTags {
		return errorf("LimitExceeded", "The number of tags has reached the maximum limit: %d", maxTags)
	}
	p.Tags = all
	return nil
}

func (s *iamService) listTags(in iamRequest) (any, error) {
	p, err := s.profileNamed(in)
	if err != nil {
		return nil, err
	}
	page, marker, err := pageOf(xmlTags(p.Tags), in, func(t xmlTag) string { return t.Key })
	if err != nil {
		return nil, err
	}
	return struct {
		Tags        []xmlTag `xml:"Tags>member"`
		IsTruncated bool
		Marker      string `xml:",omitempty"`
	}{page, marker != "", marker}, nil
}

// listProfiles leaves out tags, as IAM does.
func (s *iamService) listProfiles(in iamRequest) (any, error) {
	prefix := cmp.Or(in.Get("PathPrefix"), "/")
	var found []xmlProfile
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		if p := s.profiles[name]; strings.HasPrefix(p.Path, prefix) {
			x := s.wire(p)
			x.Tags = nil
			found = append(found, x)
		}
	}
	page, marker, err := pageOf(found, in, func(p xmlProfile) string { return p.InstanceProfileName })
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceProfiles []xmlProfile `xml:"InstanceProfiles>member"`
		IsTruncated      bool
		Marker           string `xml:",omitempty"`
	}{page, marker != "", marker}, nil
}
