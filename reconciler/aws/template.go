package aws

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws/bootstrap"
	"github.com/reeve-project/reeve/reconciler/port"
)

// shape is what the instance types of one launch template have in common
// besides the class.
type shape struct {
	image         string
	maxPods, efas int64
}

// template is a launch template by content: equal ones have the same name.
type template struct {
	name string
	data *types.RequestLaunchTemplateData
	tags []types.Tag
}

// newTemplate is the template for one shape of nodes of the request.
func newTemplate(cluster string, info ClusterInfo, req port.LaunchRequest, s shape) (template, error) {
	boot, err := bootstrap.New(cluster, info, bootstrap.Node{Class: req.Class, Template: req.Template, CapacityType: req.CapacityType, MaxPods: s.maxPods})
	if err != nil {
		return template{}, err
	}
	userData, err := boot.UserData()
	if err != nil {
		return template{}, err
	}
	data, err := templateData(req, s, strings.Contains(info.CIDR, ":"))
	if err != nil {
		return template{}, err
	}
	if userData != "" {
		data.UserData = aws.String(userData)
	}
	out := template{data: data, tags: ec2Tags(sharedTags(req))}
	out.name, err = contentName(out)
	return out, err
}

// contentName is Karpenter's prefix and a hash of the whole content. What is
// hashed are lists in the order they are sent in, so equal content has one name.
func contentName(t template) (string, error) {
	content, err := json.Marshal(struct {
		Data *types.RequestLaunchTemplateData
		Tags []types.Tag
	}{t.data, t.tags})
	if err != nil {
		return "", fmt.Errorf("launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	return ec2v1.LaunchTemplateNamePrefix + "/" + hex.EncodeToString(sum[:16]), nil
}

func templateData(req port.LaunchRequest, s shape, ipv6 bool) (*types.RequestLaunchTemplateData, error) {
	spec := req.Class.Spec
	devices, err := blockDevices(req.Class)
	if err != nil {
		return nil, err
	}
	out := &types.RequestLaunchTemplateData{
		ImageId:             aws.String(s.image),
		BlockDeviceMappings: devices,
		MetadataOptions:     metadataOptions(spec.MetadataOptions),
		NetworkInterfaces:   networkInterfaces(req.Class, s.efas, ipv6),
		Monitoring:          &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(aws.ToBool(spec.DetailedMonitoring))},
		TagSpecifications:   templateTags(req),
	}
	if p := profileOf(req.Class); p != "" {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(p)}
	}
	if dedicated(req) {
		out.Placement = &types.LaunchTemplatePlacementRequest{Tenancy: types.TenancyDedicated}
	}
	if o := spec.CPUOptions; o != nil && o.NestedVirtualization != nil {
		out.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: types.NestedVirtualizationSpecification(*o.NestedVirtualization)}
	}
	return out, nil
}

func profileOf(class *ec2v1.EC2NodeClass) string {
	if p := class.Spec.InstanceProfile; p != nil {
		return *p
	}
	return class.Status.InstanceProfile
}

// dedicated says whether the claims allow dedicated hardware only.
func dedicated(req port.LaunchRequest) bool {
	r, ok := req.Requirements.Lookup(ec2v1.LabelInstanceTenancy)
	return ok && !r.Has(string(types.TenancyDefault)) && r.Has(string(types.TenancyDedicated))
}

// templateTags are those of what a CreateFleet call cannot tag.
func templateTags(req port.LaunchRequest) []types.LaunchTemplateTagSpecificationRequest {
	tags := ec2Tags(sharedTags(req))
	if len(tags) == 0 {
		return nil
	}
	out := []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}}
	if req.CapacityType == karpv1.CapacityTypeSpot {
		out = append(out, types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: tags})
	}
	return out
}

// metadataOptions are the class's, with the defaults of its CRD. Tags are never
// shown to the instance.
func metadataOptions(o *ec2v1.MetadataOptions) *types.LaunchTemplateInstanceMetadataOptionsRequest {
	out := &types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
		HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6Disabled,
		HttpPutResponseHopLimit: aws.Int32(1),
		HttpTokens:              types.LaunchTemplateHttpTokensStateRequired,
		InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if o == nil {
		return out
	}
	if o.HTTPEndpoint != nil {
		out.HttpEndpoint = types.LaunchTemplateInstanceMetadataEndpointState(*o.HTTPEndpoint)
	}
	if o.HTTPProtocolIPv6 != nil {
		out.HttpProtocolIpv6 = types.LaunchTemplateInstanceMetadataProtocolIpv6(*o.HTTPProtocolIPv6)
	}
	if o.HTTPPutResponseHopLimit != nil {
		out.HttpPutResponseHopLimit = aws.Int32(int32(*o.HTTPPutResponseHopLimit)) //nolint:gosec // 1 to 64 by the CRD.
	}
	if o.HTTPTokens != nil {
		out.HttpTokens = types.LaunchTemplateHttpTokensState(*o.HTTPTokens)
	}
	return out
}
