package policy

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// What a policy may not call: what reaches out of the process or reads its
// environment, and what gives another answer each time, although OPA does not
// say so of all of them (certificates are checked against the clock of the
// machine, and signatures are random). bits.lsh makes a number of any size in
// one step that no deadline interrupts, and a template may run for ever.
var (
	forbiddenPrefixes = []string{"net.", "io.jwt.", "providers."}
	forbiddenBuiltins = map[string]bool{
		"http.send": true, "opa.runtime": true, "rand.intn": true, "uuid.rfc4122": true, "bits.lsh": true, "strings.render_template": true,
		"crypto.x509.parse_and_verify_certificates":              true,
		"crypto.x509.parse_and_verify_certificates_with_options": true,
	}
	// The time of the pass is an input, so it is the same in replay.
	givenBuiltins = map[string]bool{"time.now_ns": true}
)

// capabilities are OPA's without what is forbidden. Using something else is a
// compile error at the place of use.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	kept := make([]*ast.Builtin, 0, len(c.Builtins))
	for _, b := range c.Builtins {
		if !forbidden(b) {
			kept = append(kept, b)
		}
	}
	c.Builtins = kept
	c.AllowNet = []string{}
	return c
}

func forbidden(b *ast.Builtin) bool {
	if forbiddenBuiltins[b.Name] || (b.Nondeterministic && !givenBuiltins[b.Name]) {
		return true
	}
	for _, p := range forbiddenPrefixes {
		if strings.HasPrefix(b.Name, p) {
			return true
		}
	}
	return false
}
