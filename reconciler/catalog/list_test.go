package catalog

import (
	"strings"
	"testing"
)

func TestListFindsTypesByPattern(t *testing.T) {
	tests := []struct {
		name     string
		region   string
		patterns []string
		want     int
		err      string
	}{
		{"one type", "ap-northeast-2", []string{"c5a.2xlarge"}, 1, ""},
		{"a family and a type of it", "ap-northeast-2", []string{"c5a.*", "c5a.large"}, 8, ""},
		{"a type that does not exist", "us-east-1", []string{"c5a.2xlarge", "q9.large"}, 0, `"q9.large"`},
		{"no pattern at all", "us-east-1", []string{"["}, 0, "pattern"},
		{"a region that is not built in", "mars-1", nil, 0, "mars-1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := List(tc.region, tc.patterns)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want one with %s", err, tc.err)
				}
				return
			}
			if err != nil || len(got) != tc.want {
				t.Errorf("%d types, %v; want %d", len(got), err, tc.want)
			}
		})
	}
	all, err := List("ap-northeast-2", nil)
	if err != nil || len(all) < 400 {
		t.Fatalf("%d types, %v", len(all), err)
	}
	for _, it := range all {
		if len(it.Offerings) == 0 || !it.Offerings[0].Available {
			t.Errorf("%s is listed and cannot be bought: %+v", it.Name, it.Offerings)
		}
	}
}
