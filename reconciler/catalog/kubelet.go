package catalog

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// kubelet is the part of spec.kubelet that changes the size of a node.
type kubelet struct {
	maxPods        *int64
	podsPerCore    int64
	kubeReserved   resources.List
	systemReserved resources.List
	memory         *threshold // evictionHard, nil for the default
	storage        *threshold
}

// threshold is an eviction signal: an amount, or a share of the capacity.
type threshold struct {
	amount     int64
	millionths int64 // of a percent
	share      bool
}

// whole is 100 % in millionths of a percent.
const whole = 100_000_000

// of is the amount that the threshold keeps back from a capacity. 100 % switches
// the threshold off, as in kubelet.
func (t threshold) of(capacity int64) int64 {
	switch {
	case !t.share:
		return t.amount
	case t.millionths == whole:
		return 0
	default:
		return ceilShare(capacity, t.millionths, whole)
	}
}

// ceilShare is a × num / den rounded up, exact for all num up to den.
func ceilShare(a, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(num))
	q, rest := bits.Div64(hi, lo, uint64(den))
	if rest > 0 {
		q++
	}
	return int64(q)
}

func readKubelet(k *awsv1.KubeletConfiguration) (kubelet, error) {
	if k == nil {
		return kubelet{}, nil
	}
	var out kubelet
	if k.MaxPods != nil {
		n := int64(*k.MaxPods)
		if n < 0 {
			return out, fmt.Errorf("maxPods: %d is below zero", n)
		}
		out.maxPods = &n
	}
	if k.PodsPerCore != nil {
		out.podsPerCore = int64(*k.PodsPerCore)
	}
	var err error
	if out.kubeReserved, err = readReserved("kubeReserved", k.KubeReserved); err != nil {
		return out, err
	}
	if out.systemReserved, err = readReserved("systemReserved", k.SystemReserved); err != nil {
		return out, err
	}
	if out.memory, err = readThreshold("memory.available", k.EvictionHard); err != nil {
		return out, err
	}
	out.storage, err = readThreshold("nodefs.available", k.EvictionHard)
	return out, err
}

func readReserved(field string, in map[string]string) (resources.List, error) {
	out := make(resources.List, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		q, err := resources.ParseQuantity(in[key])
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %q is not a quantity: write one such as 100m or 512Mi", field, key, in[key])
		}
		if q.Sign() < 0 {
			return nil, fmt.Errorf("%s.%s: %q is below zero", field, key, in[key])
		}
		name := corev1.ResourceName(key)
		out[name] = resources.Amount(name, q)
	}
	return out, nil
}

func readThreshold(signal string, in map[string]string) (*threshold, error) {
	text, ok := in[signal]
	if !ok {
		return nil, nil
	}
	number, share := strings.CutSuffix(text, "%")
	q, err := resources.ParseQuantity(number)
	if err != nil || q.Sign() < 0 {
		return nil, fmt.Errorf("evictionHard[%s]: %q is neither a quantity nor a percentage: write one such as 100Mi or 5%%", signal, text)
	}
	if !share {
		return &threshold{amount: q.Value()}, nil
	}
	millionths := q.ScaledValue(resource.Micro)
	if strings.Trim(number, "0123456789.") != "" || millionths > whole {
		return nil, fmt.Errorf("evictionHard[%s]: %q is not a percentage from 0%% to 100%%", signal, text)
	}
	return &threshold{millionths: millionths, share: true}, nil
}
