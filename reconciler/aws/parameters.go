package aws

import (
	"context"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

const (
	// aliasParameterInterval is how long the parameters of AWS's images are good
	// for, customParameterInterval those that the user names.
	aliasParameterInterval  = 24 * time.Hour
	customParameterInterval = 5 * time.Minute
)

// parameterBook is the SSM parameters that were read. Its zero value has read
// none.
type parameterBook struct {
	mu     sync.Mutex
	byName map[string]parameterValue
}

type parameterValue struct {
	value string
	until time.Time
}

func (b *parameterBook) get(name string, now time.Time) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.byName[name]
	return v.value, ok && now.Before(v.until)
}

func (b *parameterBook) put(name, value string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byName == nil {
		b.byName = map[string]parameterValue{}
	}
	b.byName[name] = parameterValue{value, until}
}

// forget has the parameters read again when they are next needed.
func (b *parameterBook) forget(names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range names {
		delete(b.byName, n)
	}
}

// parameter is the value of an SSM parameter, kept for so long. That there is
// none is not kept: a release may be about to come.
func (c *Cloud) parameter(ctx context.Context, name string, keep time.Duration) (value string, found bool, err error) {
	now := c.clock.Now()
	if v, ok := c.parameters.get(name, now); ok {
		return v, true, nil
	}
	out, err := c.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	switch {
	case hasCode(err, "ParameterNotFound", "ParameterVersionNotFound"):
		return "", false, nil
	case err != nil:
		return "", false, kinded("ssm:GetParameter of "+name, err)
	case out.Parameter == nil:
		return "", false, nil
	}
	value = awssdk.ToString(out.Parameter.Value)
	c.parameters.put(name, value, now.Add(keep))
	return value, true, nil
}
