package resources

import (
	"fmt"
	"strconv"
	"strings"
)

// Price is an amount of money per time in nano-USD per hour. Whole numbers
// make sums exact and the same on every machine.
//
// In JSON a Price is a decimal number in USD per hour: 0.344.
type Price int64

// USD is one dollar per hour.
const USD Price = 1_000_000_000

// Most decimals of a dollar that a Price can hold.
const priceDecimals = 9

// ParsePrice reads a plain decimal such as "0.344" in USD per hour. It fails
// on exponents, on more than nine decimals, and on what does not fit an int64.
func ParsePrice(s string) (Price, error) {
	text, negative := strings.CutPrefix(s, "-")
	whole, frac, _ := strings.Cut(text, ".")
	frac = strings.TrimRight(frac, "0")
	if len(frac) > priceDecimals {
		return 0, fmt.Errorf("price %q has more than %d decimals", s, priceDecimals)
	}
	digits := whole + frac + strings.Repeat("0", priceDecimals-len(frac))
	if whole == "" || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("price %q is not a decimal number", s)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("price %q is out of range", s)
	}
	if negative {
		n = -n
	}
	return Price(n), nil
}

// Decimal is the price as a plain decimal without trailing zeros: "0.344".
func (p Price) Decimal() string {
	n, sign := uint64(p), ""
	if p < 0 {
		n, sign = -n, "-"
	}
	s := sign + strconv.FormatUint(n/uint64(USD), 10)
	if frac := n % uint64(USD); frac != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%0*d", priceDecimals, frac), "0")
	}
	return s
}

// String is the price for people: "$0.344/h".
func (p Price) String() string {
	if p < 0 {
		return "-$" + (-p).Decimal() + "/h"
	}
	return "$" + p.Decimal() + "/h"
}

// MarshalJSON writes the decimal as a JSON number.
func (p Price) MarshalJSON() ([]byte, error) { return []byte(p.Decimal()), nil }

// UnmarshalJSON reads a JSON number without exponent.
func (p *Price) UnmarshalJSON(b []byte) error {
	v, err := ParsePrice(string(b))
	if err != nil {
		return err
	}
	*p = v
	return nil
}
