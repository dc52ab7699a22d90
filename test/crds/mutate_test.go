package crds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// mutation is one change to an object, in words.
type mutation struct {
	object map[string]any
	what   string
}

// words are values that mean something somewhere in the CRDs, or nearly do.
var words = []any{
	"", "x", "X-1", "a b", "Never", "0s", "1h", "1h30m", "-1h", "90m0s", "10%", "101%", "0", "1", "-1", "07", "1.5", "1e3", "10Gi", "1Ki", "500m", "20G", "65T", "58Ti",
	"@daily", "@reboot", "0 9 * * mon-fri", "0 9 * * 7", "61 * * * *", "* * * * * *", "0 0 29 2 *",
	"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Gte", "Lt", "Lte", "in",
	"NoSchedule", "NoExecute", "PreferNoSchedule", "Empty", "Drifted", "Underutilized", "WhenEmpty", "Balanced",
	"karpenter.sh/nodepool", "karpenter.sh/capacity-type", "karpenter.sh/x", "x.karpenter.sh/y", "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/x",
	"karpenter.k8s.aws/ec2nodeclass", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/a", "Example.com/a", "a/b/c", "kubernetes.io/cluster/x",
	"spot", "on-demand", "reserved", "amd64", "linux", "karpenter.k8s.aws", "EC2NodeClass",
	"al2023@latest", "al2@v1", "bottlerocket@1.2.3", "windows2022@latest", "windows2022@v1", "AL2", "AL2023", "Custom",
	"ami-1", "subnet-1", "sg-1", "cr-1", "pg-1", "123456789012", "interface", "efa-only", "required", "optional", "enabled", "disabled", "gp3", "RAID0", "open", "*",
	int64(0), int64(1), int64(2), int64(50), int64(51), int64(100), int64(101), int64(-1), int64(2147483647), int64(2147483648), int64(432000),
	true, false, nil,
}

// names are fields that some objects have and others lack.
var names = []string{
	"weight", "replicas", "limits", "schedule", "duration", "reasons", "nodes", "minValues", "values", "key", "operator", "effect", "value", "expireAfter",
	"terminationGracePeriod", "taints", "startupTaints", "consolidateAfter", "consolidationPolicy", "budgets", "role", "instanceProfile", "amiFamily", "alias", "id",
	"name", "owner", "ssmParameter", "tags", "ownerID", "instanceMatchCriteria", "rootVolume", "ebs", "snapshotID", "volumeSize", "volumeInitializationRate", "kubelet",
	"evictionSoft", "evictionSoftGracePeriod", "kubeReserved", "memory.available", "cpu", "memory", "karpenter.sh/nodepool", "example.com/a", "a b", "labels", "annotations", "nope",
}

// mutate makes a copy of an object with one change below its spec or labels.
func mutate(r *rand.Rand, source map[string]any) mutation {
	m := mutation{object: clone(source)}
	places := containers(m.object["spec"], "spec")
	place := places[r.IntN(len(places))]
	switch c := place.value.(type) {
	case map[string]any:
		m.what = place.path + ": " + mutateMap(r, c)
	case []any:
		var what string
		c, what = mutateList(r, c)
		place.put(c)
		m.what = place.path + ": " + what
	}
	return m
}

// container is a struct or list somewhere in an object.
type container struct {
	path  string
	value any
	put   func(any) // replaces it in its parent
}

func containers(v any, path string) []container { return below(v, path, func(any) {}) }

func below(v any, path string, put func(any)) []container {
	var out []container
	switch v := v.(type) {
	case map[string]any:
		out = append(out, container{path, v, put})
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, below(v[k], path+"."+k, func(n any) { v[k] = n })...)
		}
	case []any:
		out = append(out, container{path, v, put})
		for i, item := range v {
			out = append(out, below(item, path+"."+strconv.Itoa(i), func(n any) { v[i] = n })...)
		}
	}
	return out
}

func mutateMap(r *rand.Rand, m map[string]any) string {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 || r.IntN(4) == 0 {
		k, v := names[r.IntN(len(names))], value(r)
		m[k] = v
		return fmt.Sprintf("%s = %v", k, v)
	}
	k := keys[r.IntN(len(keys))]
	if r.IntN(3) == 0 {
		delete(m, k)
		return "without " + k
	}
	v := value(r)
	m[k] = v
	return fmt.Sprintf("%s = %v", k, v)
}

func mutateList(r *rand.Rand, l []any) ([]any, string) {
	if len(l) == 0 {
		v := value(r)
		return []any{v}, fmt.Sprintf("one element %v", v)
	}
	i := r.IntN(len(l))
	switch r.IntN(4) {
	case 0:
		return slices.Delete(l, i, i+1), fmt.Sprintf("without element %d", i)
	case 1:
		return append(l, copied(l[i])), fmt.Sprintf("element %d twice", i)
	case 2:
		return []any{}, "empty"
	}
	v := value(r)
	l[i] = v
	return l, fmt.Sprintf("element %d = %v", i, v)
}

// value is a word, or now and then something compound.
func value(r *rand.Rand) any {
	switch r.IntN(12) {
	case 0:
		return map[string]any{}
	case 1:
		return []any{}
	case 2:
		return []any{words[r.IntN(len(words))]}
	case 3:
		return map[string]any{names[r.IntN(len(names))]: words[r.IntN(len(words))]}
	}
	return words[r.IntN(len(words))]
}

func clone(m map[string]any) map[string]any {
	c, _ := copied(m).(map[string]any)
	return c
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = copied(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copied(e)
		}
		return out
	}
	return v
}
