package resources

import (
	"math/big"
	"testing"
)

func FuzzParsePrice(f *testing.F) {
	for _, s := range []string{"0", "-0", "0.344", "1e3", "1E-9", "1e-10", "9223372036.854775807", "9223372036.854775808", "1e999999999", "-1e-999999999", ".", "", "0x1p3", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 64 {
			return
		}
		p, err := ParsePrice(s)
		if err != nil {
			return
		}
		if want, ok := new(big.Rat).SetString(s); !ok || want.Cmp(big.NewRat(int64(p), int64(USD))) != 0 {
			t.Errorf("ParsePrice(%q) is %d billionths", s, p)
		}
	})
}
