package resources_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/resources"
)

func TestParseQuantity(t *testing.T) {
	for _, text := range []string{"0", "100", "500m", "1.5Gi", "1e3", "1E-3", "+2e0009", "9223372036854775807", "1e999"} {
		want := resource.MustParse(text)
		got, err := resources.ParseQuantity(text)
		if err != nil || got.Cmp(want) != 0 {
			t.Errorf("ParseQuantity(%q) = %s, %v, want %s", text, &got, err, &want)
		}
	}
	refused := []string{
		"", "ten", "1e", "0x10", ".inf",
		"1e1000", "1E-99999999", "1e999999999999", "-.5e+2147483647", "1e-00000000099999999Gi", " 1e99999",
		strings.Repeat("9", 1000), "0." + strings.Repeat("0", 1000) + "1",
	}
	for _, text := range refused {
		if got, err := resources.ParseQuantity(text); err == nil {
			t.Errorf("ParseQuantity(%.40q) = %s, want an error", text, &got)
		}
	}
}

func TestAnIdentifierIsNoHugeExponent(t *testing.T) {
	for text, want := range map[string]bool{
		"51e5394e-232b-4053-8e4e-3d405e1c822b": false, "12e345678x": false, "1e999": false,
		"1e1000": true, " 1E-99999999 ": true,
	} {
		if got := resources.HugeExponent(text); got != want {
			t.Errorf("HugeExponent(%q) = %t, want %t", text, got, want)
		}
	}
}

func TestListRefusesAnExponentThatNeverEnds(t *testing.T) {
	var l resources.List
	err := l.UnmarshalJSON([]byte(`{"cpu": "1e-999999999"}`))
	if err == nil || !strings.Contains(err.Error(), "the exponent is beyond all reason") {
		t.Errorf("error = %v, want one that names the exponent", err)
	}
}
