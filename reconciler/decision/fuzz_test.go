package decision

import (
	"bytes"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, s := range []string{``, `null`, `[]`, `{}`, `{"version":"ledger.reeve.dev/v1"}`,
		`{"version":"ledger.reeve.dev/v1","id":"20260406T120003.000Z-os3bk6t2rxxz46ob","kind":"provision","time":"2026-04-06T12:00:03Z","proposal":{"claims":[{"price":0.344,"launchable":{"count":60,"list":"x"},"requirements":[{"key":"a","operator":"Gt","values":["4"]}]}]}}`,
		`{"version":"ledger.reeve.dev/v1","proposal":{"claims":[{"price":1e999999999}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := Decode(b); err == nil {
			stable(t, d, Encode, Decode)
		}
		if o, err := DecodeOutcome(b); err == nil {
			stable(t, o, EncodeOutcome, DecodeOutcome)
		}
	})
}

// stable holds that what was read is written in a form that is read and written
// the same again.
func stable[T any](t *testing.T, v *T, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	t.Helper()
	first, err := encode(v)
	if err != nil {
		return // a value that cannot be written was never recorded
	}
	again, err := decode(first)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, first)
	}
	second, err := encode(again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("written differently the second time: %v\n%s\n%s", err, first, second)
	}
}
