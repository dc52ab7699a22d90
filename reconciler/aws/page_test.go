package aws

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is what people prepare an account by.
const page = "../../docs/how-to/connect-to-aws.md"

// jsonOfPage reads the block of the page that is written to the file.
func jsonOfPage(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```json "+file+"\n")
	block, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("%s has no block of JSON for %s", page, file)
	}
	if err := json.Unmarshal([]byte(block), into); err != nil {
		t.Fatalf("%s: %s: %v", page, file, err)
	}
}

// services are the interfaces of what is called, by the prefix that IAM has for
// the service.
var services = map[string]reflect.Type{
	"ec2": reflect.TypeFor[ec2API](), "ssm": reflect.TypeFor[ssmAPI](), "iam": reflect.TypeFor[iamAPI](),
	"eks": reflect.TypeFor[eksAPI](), "pricing": reflect.TypeFor[pricingAPI](), "sqs": reflect.TypeFor[sqsAPI](),
}

// actionOf is the action that IAM asks for a call.
func actionOf(service, call string) string {
	if service == "sqs" {
		call = strings.TrimSuffix(call, "Batch")
	}
	return service + ":" + call
}

func TestTheDocumentedPermissionsAreThoseOfTheCalls(t *testing.T) {
	var policy struct{ Statement []struct{ Action []string } }
	jsonOfPage(t, "iam.json", &policy)
	var got []string
	for _, s := range policy.Statement {
		if !slices.IsSorted(s.Action) {
			t.Errorf("actions are not sorted: %v", s.Action)
		}
		got = append(got, s.Action...)
	}
	// No call passes a role: launching an instance with a profile does.
	want := []string{"iam:PassRole"}
	for service, api := range services {
		for i := range api.NumMethod() {
			want = append(want, actionOf(service, api.Method(i).Name))
		}
	}
	if diff := cmp.Diff(sortedSet(want), sortedSet(got)); diff != "" {
		t.Errorf("actions in %s (-calls +documented):\n%s", page, diff)
	}
}

func sortedSet(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// A permission for a call that nobody makes is one too many.
func TestEveryCallThatIsAllowedForIsMade(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, f := range files {
		if f == "api.go" || strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	// IAM asks for it where a profile is made with tags.
	implied := map[string]bool{"TagInstanceProfile": true}
	for service, api := range services {
		for i := range api.NumMethod() {
			name := api.Method(i).Name
			call := regexp.MustCompile(fmt.Sprintf(`\.%s\(|\.New%sPaginator\(`, name, name))
			if !implied[name] && !call.MatchString(source.String()) {
				t.Errorf("%s is never called: take it out of the interface", actionOf(service, name))
			}
		}
	}
}

// reasonWord is a string of the source that looks like the reason of a condition.
var reasonWord = regexp.MustCompile(`"([A-Z][A-Za-z]+(?:NotFound|ResolutionFailed|Invalid|Unresolved|InstanceTypes|Pending|NotReady|ValidationFailed|Alias|Dependents))"`)

func TestTheDocumentedReasonsAreThoseOfTheConditions(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## The status of an EC2NodeClass\n")
	if !found {
		t.Fatalf("%s does not tell of the status", page)
	}
	for _, f := range []string{"alias.go", "ami.go", "class.go", "conditions.go", "dryrun.go", "profile.go", "securitygroups.go", "subnets.go", "validation.go"} {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reasonWord.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(section, "`"+m[1]+"`") {
				t.Errorf("%s: reason %s is not on %s", f, m[1], page)
			}
		}
	}
}
