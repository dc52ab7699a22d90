package awsapi

import (
	"encoding/json"
	"fmt"
)

// answered is what a client token stands for.
type answered struct {
	input  string
	output any
}

// once does what is asked for once per client token: the same token with the
// same input has the same answer again, and with another input is refused.
// A call that failed may be repeated with the token.
func once[O any](e *Endpoint, action string, token *string, in any, do func() (*O, error)) (*O, error) {
	if deref(token) == "" {
		return do()
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the input: %w", action, err)
	}
	key := action + "/" + *token
	if earlier, ok := e.ec2.tokens[key]; ok {
		if earlier.input != string(raw) {
			return nil, errorf("IdempotentParameterMismatch", "The client token %s was used with other parameters before.", *token)
		}
		return earlier.output.(*O), nil
	}
	out, err := do()
	if err != nil {
		return nil, err
	}
	e.ec2.tokens[key] = &answered{string(raw), out}
	return out, nil
}
