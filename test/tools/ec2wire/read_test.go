package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The sources below have the shape of the SDK's, with the fields that matter.
const requests = `package ec2

func awsEc2query_serializeOpDocumentTellInput(v *TellInput, value query.Value) error {
	object := value.Object()
	_ = object

	if v.DryRun != nil {
		objectKey := object.Key("DryRun")
		objectKey.Boolean(*v.DryRun)
	}

	if v.Tags != nil {
		objectKey := object.FlatKey("Tag")
		if err := awsEc2query_serializeDocumentTagList(v.Tags, objectKey); err != nil {
			return err
		}
	}

	return nil
}

func awsEc2query_serializeDocumentTagList(v []types.Tag, value query.Value) error {
	array := value.Array("Item")

	for i := range v {
		av := array.Value()
		if err := awsEc2query_serializeDocumentTag(&v[i], av); err != nil {
			return err
		}
	}
	return nil
}

func awsEc2query_serializeDocumentTag(v *types.Tag, value query.Value) error {
	object := value.Object()
	_ = object

	if len(v.Kind) > 0 {
		objectKey := object.Key("Key")
		objectKey.String(string(v.Kind))
	}

	return nil
}
`

const responses = `package ec2

func awsEc2query_deserializeOpDocumentTellOutput(v **TellOutput, decoder smithyxml.NodeDecoder) error {
	for {
		switch {
		case strings.EqualFold("noticeSet", t.Name.Local):
			nodeDecoder := smithyxml.WrapNodeDecoder(decoder.Decoder, t)
			if err := awsEc2query_deserializeDocumentNoticeList(&sv.Notices, nodeDecoder); err != nil {
				return err
			}

		case strings.EqualFold("nextToken", t.Name.Local):
			{
				xtv := string(val)
				sv.NextToken = ptr.String(xtv)
			}

		default:
			// Do nothing and ignore the unexpected tag element
		}
	}
}

func awsEc2query_deserializeDocumentNoticeList(v *[]types.Notice, decoder smithyxml.NodeDecoder) error {
	for {
		switch {
		case strings.EqualFold("member", t.Name.Local):
			if err := awsEc2query_deserializeDocumentNotice(&destAddr, nodeDecoder); err != nil {
				return err
			}

		default:
		}
	}
}

func awsEc2query_deserializeDocumentNotice(v **types.Notice, decoder smithyxml.NodeDecoder) error {
	for {
		switch {
		case strings.EqualFold("words", t.Name.Local):
			if err := awsEc2query_deserializeDocumentWordList(&sv.Words, nodeDecoder); err != nil {
				return err
			}

		default:
		}
	}
}

func awsEc2query_deserializeDocumentWordList(v *[]string, decoder smithyxml.NodeDecoder) error {
	for {
		switch {
		case strings.EqualFold("item", t.Name.Local):
			{
				xtv := string(val)
				col = xtv
			}

		default:
		}
	}
}
`

func TestNamesAreReadFromTheSources(t *testing.T) {
	got, err := read(requests, responses, []string{"Tell"})
	if err != nil {
		t.Fatal(err)
	}
	want := tables{
		actions: []string{"Tell"},
		requests: map[string][]field{
			"ec2.TellInput": {{name: "DryRun", wire: "DryRun"}, {name: "Tags", wire: "Tag"}},
			"types.Tag":     {{name: "Kind", wire: "Key"}},
		},
		responses: map[string][]field{
			"ec2.TellOutput": {{name: "Notices", wire: "noticeSet", item: "member"}, {name: "NextToken", wire: "nextToken"}},
			"types.Notice":   {{name: "Words", wire: "words", item: "item"}},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tables{}, field{})); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	code, err := got.code("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`"ec2.TellOutput": "Notices:noticeSet/member NextToken:nextToken",`, `"ec2.TellInput": "DryRun Tags:Tag",`, "ec2 v1.2.3. DO NOT EDIT."} {
		if !strings.Contains(string(code), line) {
			t.Errorf("the code lacks %s:\n%s", line, code)
		}
	}
}

func TestSourcesOfAnotherShapeAreAnError(t *testing.T) {
	for name, source := range map[string][2]string{
		"no serializer":           {"", responses},
		"a parameter of no field": {strings.Replace(requests, "*v.DryRun", "true", 1), responses},
		"an element of no field":  {requests, strings.Replace(responses, "sv.NextToken", "x", 1)},
		"a list without entries":  {requests, strings.Replace(responses, `case strings.EqualFold("item", t.Name.Local)`, "case true", 1)},
		"a type that is gone":     {requests, strings.Replace(responses, "deserializeDocumentNotice(v", "deserializeDocumentOther(v", 1)},
	} {
		if _, err := read(source[0], source[1], []string{"Tell"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	got, err := read(requests, "", []string{"Tell"})
	if err != nil || len(got.responses["ec2.TellOutput"]) != 0 {
		t.Errorf("an action without an answer: %v, %v", got.responses, err)
	}
}
