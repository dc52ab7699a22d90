package authoring

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/reeve-project/reeve/reconciler/policy"
)

// DocsOptions say which policies to describe.
type DocsOptions struct {
	// Path is the directory of the fleet repository; empty for the shipped
	// policies alone.
	Path string
	// Own leaves the shipped policies out.
	Own bool
}

// Docs describes the policies that judge a fleet, from their annotations. When
// the Rego cannot be compiled the error has the place of each fault. It is
// ErrNothing when there are no rules.
func Docs(o DocsOptions) ([]policy.PackageDoc, error) {
	var files map[string][]byte
	if o.Path != "" {
		root, err := open(o.Path)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if files, err = rules(root); err != nil {
			return nil, err
		}
	}
	all, err := policy.Describe(policy.NewBundle(files, nil))
	if err != nil {
		return nil, err
	}
	var out []policy.PackageDoc
	for _, d := range all {
		if !o.Own || !d.Shipped() {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w: no policy of the fleet has a rule", o.Path, ErrNothing)
	}
	return out, nil
}

// DocsMarkdown writes the reference of rules as a page with that heading.
func DocsMarkdown(w io.Writer, heading string, docs []policy.PackageDoc) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n| rule | stage | says | title |\n| --- | --- | --- | --- |\n", heading)
	Index(&b, docs)
	b.WriteString("\n")
	for i := range docs {
		d := &docs[i]
		kind := "file"
		if d.Shipped() {
			kind = "shipped file"
		}
		Section(&b, d, fmt.Sprintf("%s `%s`", kind, strings.TrimPrefix(d.File, policy.ShippedDir)))
	}
	_, err := w.Write(append(bytes.TrimRight(b.Bytes(), "\n"), '\n'))
	return err
}

// Index writes a row of a table for each rule: id, stage, kind and title.
func Index(b *bytes.Buffer, docs []policy.PackageDoc) {
	for _, d := range docs {
		for _, r := range d.Rules {
			fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s |\n", r.ID, Anchor(r.ID), r.Stage, r.Kind, title(&r))
		}
	}
}

// Anchor is how Markdown links to a heading: letters in lower case, without
// signs.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, strings.ToLower(heading))
}

func title(r *policy.Rule) string {
	if r.Title == "" {
		return "no title"
	}
	return strings.Join(strings.Fields(r.Title), " ")
}

// Section writes a package with its rules. A rule without a description of its
// own has that of its package, which stands above already.
func Section(b *bytes.Buffer, d *policy.PackageDoc, file string) {
	fmt.Fprintf(b, "## %s\n\n", d.Title)
	if d.Description != "" {
		b.WriteString(d.Description + "\n\n")
	}
	fmt.Fprintf(b, "Package `%s`, %s.\n\n", d.Name, file)
	for _, r := range d.Rules {
		fmt.Fprintf(b, "### %s\n\n%s. Stage `%s`, `%s`, severity %s.\n\n", r.ID, title(&r), r.Stage, r.Kind, r.Severity)
		if r.Description != "" && r.Description != d.Description {
			b.WriteString(r.Description + "\n\n")
		}
		if r.Remediation != "" {
			fmt.Fprintf(b, "What to do: %s\n\n", r.Remediation)
		}
	}
}

// packageJSON and ruleJSON are the form for machines.
type packageJSON struct {
	Package     string     `json:"package"`
	Title       string     `json:"title"`
	Description string     `json:"description,omitempty"`
	File        string     `json:"file"`
	Shipped     bool       `json:"shipped"`
	Rules       []ruleJSON `json:"rules"`
}

type ruleJSON struct {
	ID          string `json:"id"`
	Stage       string `json:"stage"`
	Kind        string `json:"kind"`
	Severity    string `json:"severity"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Remediation string `json:"remediation,omitempty"`
	File        string `json:"file"`
	Line        int    `json:"line"`
}

// DocsJSON writes the reference of rules for machines.
func DocsJSON(w io.Writer, docs []policy.PackageDoc) error {
	out := make([]packageJSON, 0, len(docs))
	for i := range docs {
		d := &docs[i]
		p := packageJSON{Package: d.Name, Title: d.Title, Description: d.Description, File: d.File, Shipped: d.Shipped()}
		for _, r := range d.Rules {
			p.Rules = append(p.Rules, ruleJSON{
				ID: r.ID, Stage: string(r.Stage), Kind: r.Kind, Severity: r.Severity, Title: r.Title,
				Description: r.Description, Remediation: r.Remediation, File: r.Position.File, Line: r.Position.Line,
			})
		}
		out = append(out, p)
	}
	return writeJSON(w, map[string]any{"packages": out})
}
