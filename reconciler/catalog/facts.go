package catalog

import "sync"

// builtIn are the built-in types by name.
var builtIn = sync.OnceValues(func() (map[string]*Type, error) {
	types, err := readTypes(embedded)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Type, len(types))
	for i := range types {
		out[types[i].Name] = &types[i]
	}
	return out, nil
})

// Document fills in what no call of EC2 tells but the built-in tables know: the
// network bandwidth, and how many branch interfaces there can be. A type that
// the tables do not have is left as it is: it has no such label, and no branch
// interfaces. It fails only if the tables cannot be read.
func (t *Type) Document() error {
	known, err := builtIn()
	if err != nil {
		return err
	}
	if k, ok := known[t.Name]; ok {
		t.NetworkMbps, t.BranchENIs, t.VPCLimits = k.NetworkMbps, k.BranchENIs, k.VPCLimits
	}
	return nil
}
