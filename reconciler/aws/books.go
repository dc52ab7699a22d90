package aws

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// templateBook knows the launch templates that are in EC2, by name, and when
// something was last launched from each.
type templateBook struct {
	mu       sync.Mutex
	hydrated bool
	used     map[string]time.Time
}

// launchBook remembers what was sent with each client token: EC2 takes a token
// again only with the same parameters.
type launchBook struct {
	mu      sync.Mutex
	byToken map[string]*launch
}

// launch is one CreateFleet call, made once or more.
type launch struct {
	input *ec2.CreateFleetInput
	// templates are the names of those it launches from.
	templates []string
	// used is when it was last sent; answered says that EC2 has said what
	// became of it.
	used     time.Time
	answered bool
}
