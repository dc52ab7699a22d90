package awsapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
)

// filler fills every field of an SDK type with something.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			*t = time.UnixMilli(f.Int64N(4e12)).UTC()
			return
		}
		for i := range v.NumField() {
			// The SDK's own bookkeeping is not on the wire.
			if field := v.Type().Field(i); field.IsExported() && field.Name != "ResultMetadata" {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+f.IntN(3), 4))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d <&>\"'.é", v.Type().Name(), f.IntN(1000)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1 + f.Int64N(1<<31-1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(1+f.IntN(1e6)) / 1000)
	default:
		panic(fmt.Sprintf("the SDK has a field of %s, which the codec does not know", v.Type()))
	}
}

// everything lets compare unexported fields too: the SDK's types have markers.
var everything = cmp.Exporter(func(reflect.Type) bool { return true })

// mirror decodes what it is sent and answers with the output.
type mirror struct {
	t      *testing.T
	action string
	output any
	got    any
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	check(m.t, err)
	form, err := url.ParseQuery(string(raw))
	check(m.t, err)
	m.got = wireInputs[m.action]()
	check(m.t, decode(form, m.got))
	body, err := encode(m.action, m.output)
	check(m.t, err)
	writeXML(w, http.StatusOK, body)
}

func TestEveryFieldOfEveryActionPassesTheWireBothWays(t *testing.T) {
	for _, action := range slices.Sorted(maps.Keys(wireInputs)) {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", action, seed), func(t *testing.T) {
				f := filler{rand.New(rand.NewPCG(seed, 7))}
				in, out := wireInputs[action](), wireOutputs[action]()
				f.fill(reflect.ValueOf(in).Elem())
				f.fill(reflect.ValueOf(out).Elem())
				m := &mirror{t: t, action: action, output: out}
				client := ec2.NewFromConfig(config("ap-northeast-2", &http.Client{Transport: transport{m}}))
				results := reflect.ValueOf(client).MethodByName(action).Call([]reflect.Value{reflect.ValueOf(context.Background()), reflect.ValueOf(in)})
				if err, _ := results[1].Interface().(error); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(in, m.got, everything); diff != "" {
					t.Errorf("what the endpoint read (-sent +read):\n%s", diff)
				}
				got := results[0]
				got.Elem().FieldByName("ResultMetadata").SetZero()
				if diff := cmp.Diff(out, got.Interface(), everything); diff != "" {
					t.Errorf("what the client read (-sent +read):\n%s", diff)
				}
			})
		}
	}
}

func TestEveryActionHasWireNamesAndAnAnswer(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(wireInputs)), slices.Sorted(maps.Keys(ec2Actions))); diff != "" {
		t.Errorf("actions (-with wire names +answered):\n%s", diff)
	}
}

func TestFormsThatEC2DoesNotKnowAreRefused(t *testing.T) {
	tests := []struct{ name, form, want string }{
		{"a parameter that the action lacks", "Fltr.1.Name=a", "UnknownParameter: The parameter Fltr is not recognized"},
		{"a parameter deep within one that it has", "Filter.1.Nam=a", "UnknownParameter: The parameter Filter.1.Nam is not recognized"},
		{"an entry without a number", "InstanceId.one=i-1", "UnknownParameter: The parameter InstanceId.one is not recognized"},
		{"an entry before the first", "InstanceId.0=i-1", "UnknownParameter: The parameter InstanceId.0 is not recognized"},
		{"something below a value", "MaxResults.1=5", "UnknownParameter: The parameter MaxResults.1 is not recognized"},
		{"a list without entries", "InstanceId=i-1", "InvalidParameterValue: Value (i-1) for parameter InstanceId is invalid: entries are numbered from 1."},
		{"a value for a structure", "Filter.1=a", "InvalidParameterValue: Value (a) for parameter Filter.1 is invalid: a structure was expected."},
		{"a number that is none", "MaxResults=many", "InvalidParameterValue: Value (many) for parameter MaxResults is invalid."},
		{"a boolean that is none", "DryRun=maybe", "InvalidParameterValue: Value (maybe) for parameter DryRun is invalid."},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			form, err := url.ParseQuery("Action=DescribeInstances&Version=2016-11-15&" + tc.form)
			check(t, err)
			err = decode(form, new(ec2.DescribeInstancesInput))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}

// config is the configuration of an SDK client that tries once.
func config(region string, c *http.Client) aws.Config {
	return aws.Config{
		Region: region, HTTPClient: c, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
