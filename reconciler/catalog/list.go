package catalog

import (
	"fmt"
	"path"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// Everywhere resolves the types for a plain AL2023 node class that has a subnet
// in every zone of the region: what there is to choose from before any spec
// narrows it.
func (d *Data) Everywhere(s Settings) ([]*InstanceType, error) {
	class := &awsv1.EC2NodeClass{}
	class.Name = "everywhere"
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	class.Status.Subnets = d.Subnets()
	return d.Resolve(class, s)
}

// Subnets are made-up subnets, one in every zone of the region, for questions
// that are asked before a real account has answered.
func (d *Data) Subnets() []awsv1.Subnet {
	out := make([]awsv1.Subnet, 0, len(d.zones))
	for _, z := range d.zones {
		out = append(out, awsv1.Subnet{ID: "subnet-" + z.ID, Zone: z.Name, ZoneID: z.ID})
	}
	return out
}

// List are the types of the embedded catalog that match one of the patterns,
// resolved as Everywhere does. Patterns are names in which "*" stands for any
// characters; without a pattern all types that the region offers are listed. It
// fails on a region that is not built in and on a pattern that no type matches.
func List(region string, patterns []string) ([]*InstanceType, error) {
	data, err := Embedded(region)
	if err != nil {
		return nil, err
	}
	types, err := data.Everywhere(DefaultSettings())
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(patterns))
	var out []*InstanceType
	for _, t := range types {
		if len(patterns) == 0 && len(t.Offerings) > 0 {
			out = append(out, t)
			continue
		}
		matched := false
		for i, p := range patterns {
			ok, err := path.Match(p, t.Name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
			used[i] = used[i] || ok
			matched = matched || ok
		}
		if matched {
			out = append(out, t)
		}
	}
	for i, ok := range used {
		if !ok {
			return nil, fmt.Errorf("no instance type matches %q in the catalog", patterns[i])
		}
	}
	return out, nil
}
