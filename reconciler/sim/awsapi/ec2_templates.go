package awsapi

import (
	"encoding/base64"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// maxUserData is how many bytes of user data an instance can have before they
// are encoded.
const maxUserData = 16 << 10

// maxTags is how many tags a resource can have.
const maxTags = 50

// template is a launch template; it has one version.
type template struct {
	id, name string
	data     *types.RequestLaunchTemplateData
	userData []byte
	tags     map[string]string
	created  time.Time
}

// templateName is what a launch template may be called.
var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

func (e *Endpoint) createLaunchTemplate(in *ec2.CreateLaunchTemplateInput, dry bool) (*ec2.CreateLaunchTemplateOutput, error) {
	if dry {
		_, err := e.newTemplate(in)
		return nil, err
	}
	return once(e, "CreateLaunchTemplate", in.ClientToken, in, func() (*ec2.CreateLaunchTemplateOutput, error) {
		t, err := e.newTemplate(in)
		if err != nil {
			return nil, err
		}
		e.ec2.templates = append(e.ec2.templates, t)
		return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: t.info()}, nil
	})
}

func (e *Endpoint) newTemplate(in *ec2.CreateLaunchTemplateInput) (*template, error) {
	name := deref(in.LaunchTemplateName)
	if !templateName.MatchString(name) {
		return nil, errorf("InvalidLaunchTemplateName.MalformedException", "The specified launch template name '%s' is malformed.", name)
	}
	if slices.ContainsFunc(e.ec2.templates, func(t *template) bool { return t.name == name }) {
		return nil, errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	if in.LaunchTemplateData == nil {
		return nil, errorf("MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	userData, err := decodeUserData(in.LaunchTemplateData.UserData)
	if err != nil {
		return nil, err
	}
	tags, err := tagsFor(in.TagSpecifications, types.ResourceTypeLaunchTemplate)
	if err != nil {
		return nil, err
	}
	n := len(e.ec2.templates)
	return &template{
		id: "lt-0" + sim.HexID("template", e.options.Cluster, name, e.world.Now().UnixNano(), n), name: name,
		data: in.LaunchTemplateData, userData: userData, tags: tags, created: e.world.Now(),
	}, nil
}

// decodeUserData refuses what is too much or not base64.
func decodeUserData(encoded *string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(deref(encoded))
	switch {
	case err != nil:
		return nil, errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	case len(raw) > maxUserData:
		return nil, errorf("InvalidUserData.Malformed", "User data is limited to %d bytes", maxUserData)
	}
	return raw, nil
}

// tagsFor are the tags that the specifications give to the kind of resource.
func tagsFor(specs []types.TagSpecification, kind types.ResourceType) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range specs {
		if err := checkTags(s.Tags); err != nil {
			return nil, err
		}
		if s.ResourceType != kind {
			continue
		}
		for _, t := range s.Tags {
			out[deref(t.Key)] = deref(t.Value)
		}
	}
	if len(out) > maxTags {
		return nil, errorf("TagLimitExceeded", "More than %d tags for one resource.", maxTags)
	}
	return out, nil
}

// reserved is a key that only AWS may use.
var reserved = regexp.MustCompile(`(?i)^aws:`)

func checkTags(tags []types.Tag) error {
	for _, t := range tags {
		key := deref(t.Key)
		switch {
		case reserved.MatchString(key):
			return errorf("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use: '%s'", key)
		case key == "" || len(key) > 128:
			return errorf("InvalidParameterValue", "Tag key '%s' is not 1 to 128 characters long.", key)
		case len(deref(t.Value)) > 256:
			return errorf("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters: '%s'", key)
		}
	}
	return nil
}

func (t *template) info() *types.LaunchTemplate {
	return &types.LaunchTemplate{
		LaunchTemplateId: new(t.id), LaunchTemplateName: new(t.name), CreateTime: new(t.created), DefaultVersionNumber: new(int64(1)),
		LatestVersionNumber: new(int64(1)), Tags: tagList(t.tags),
	}
}

// visible are the templates that reads show already.
func (e *Endpoint) visibleTemplates() []*template {
	var out []*template
	for _, t := range e.ec2.templates {
		if !t.created.Add(e.options.Delays.Template).After(e.world.Now()) {
			out = append(out, t)
		}
	}
	return out
}

const (
	noTemplateName = "InvalidLaunchTemplateName.NotFoundException"
	noTemplateID   = "InvalidLaunchTemplateId.NotFound"
)

// find is the visible template of the id or, without one, of the name.
func (e *Endpoint) findTemplate(id, name *string) (*template, error) {
	for _, t := range e.visibleTemplates() {
		if id != nil && t.id == *id || id == nil && t.name == deref(name) {
			return t, nil
		}
	}
	if id != nil {
		return nil, errorf(noTemplateID, "The specified launch template, with template ID %s, does not exist.", *id)
	}
	return nil, errorf(noTemplateName, "The specified launch template, with template name %s, does not exist.", deref(name))
}

func (e *Endpoint) describeLaunchTemplates(in *ec2.DescribeLaunchTemplatesInput) (*ec2.DescribeLaunchTemplatesOutput, error) {
	list, err := byIDs(e.visibleTemplates(), in.LaunchTemplateIds, func(t *template) string { return t.id }, noTemplateID, "The specified launch template, with template ID %s, does not exist.")
	if err != nil {
		return nil, err
	}
	if list, err = byIDs(list, in.LaunchTemplateNames, func(t *template) string { return t.name }, noTemplateName, "The specified launch template, with template name %s, does not exist."); err != nil {
		return nil, err
	}
	list, err = selected(list, in.Filters, &template{}, func(t *template) (attributes, map[string]string) {
		return attributes{"launch-template-name": one(t.name), "create-time": one(t.created.UTC().Format(timeForm))}, t.tags
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{1, 200, 200})
	out := &ec2.DescribeLaunchTemplatesOutput{NextToken: next, LaunchTemplates: []types.LaunchTemplate{}}
	for _, t := range list {
		out.LaunchTemplates = append(out.LaunchTemplates, *t.info())
	}
	return out, err
}

func (e *Endpoint) deleteLaunchTemplate(in *ec2.DeleteLaunchTemplateInput) (*ec2.DeleteLaunchTemplateOutput, error) {
	t, err := e.findTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	e.ec2.templates = slices.DeleteFunc(e.ec2.templates, func(x *template) bool { return x == t })
	return &ec2.DeleteLaunchTemplateOutput{LaunchTemplate: t.info()}, nil
}
