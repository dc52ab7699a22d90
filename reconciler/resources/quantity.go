package resources

import (
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mostDigits is the length of the longest text that is read as a quantity. A
// quantity has at most 2^63-1 units and a billionth of one is the least, which
// is 29 digits.
const mostDigits = 64

// hugeExponent is a number with an exponent of more than three digits. What
// goes on with other characters is no number, such as the identifier
// 51e5394e-232b, and Kubernetes refuses it at once.
var hugeExponent = regexp.MustCompile(`^\s*[+-]?[0-9.]+[eE][+-]?0*[1-9][0-9]{3,}\s*$`)

var (
	errExponent = errors.New("the exponent is beyond all reason")
	errLong     = errors.New("more digits than a quantity can have")
)

// ParseQuantity reads a Kubernetes quantity that a stranger wrote. Kubernetes'
// own function writes out all digits of 1e-999999999, which takes hours, and
// decoding a resource.Quantity from JSON calls it: what is decoded has to be
// read by this one before.
func ParseQuantity(text string) (resource.Quantity, error) {
	if HugeExponent(text) {
		return resource.Quantity{}, errExponent
	}
	if len(text) > mostDigits {
		return resource.Quantity{}, errLong
	}
	return resource.ParseQuantity(text)
}

// HugeExponent says whether the text is a number with an exponent that no
// quantity has and that Kubernetes would not come back from.
func HugeExponent(text string) bool { return hugeExponent.MatchString(text) }
