package awsapi

import karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

// quota is how many virtual CPUs of a capacity type may still be launched.
type quota struct {
	bounded bool
	left    int
	code    string
}

// SetQuota bounds how many virtual CPUs of the capacity type may run in the
// account at once; below zero is without bound, as at first.
func (e *Endpoint) SetQuota(capacityType string, vcpus int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ec2.quotas[capacityType] = vcpus
}

func (e *Endpoint) quotaLeft(capacityType string) quota {
	most, bounded := e.ec2.quotas[capacityType]
	q := quota{bounded: bounded && most >= 0, left: most, code: codeVCPULimit}
	if capacityType == karpv1.CapacityTypeSpot {
		q.code = codeSpotLimit
	}
	for _, in := range e.ec2.instances {
		if in.CapacityType == capacityType && in.alive() {
			q.left -= int(in.vcpus)
		}
	}
	return q
}
